"""Months of operation in processes of their own: drift, a bad month, kills, and two operators."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import Ridge

from ortlearn.lifecycle import ModelFolder, adapt, promote
from tests.lifecycle.data import month

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")


def ortlearn(folder, *arguments):
    """Run a command in a folder, and return its exit status and its output."""
    found = subprocess.run(
        [sys.executable, "-m", "ortlearn", *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return found.returncode, found.stdout + found.stderr


def written(path, *parts):
    """Write months as a table."""
    frames = [X.assign(label=y) for X, y in parts]
    pd.concat(frames, ignore_index=True).to_csv(path, index=False)


def only(town, part):
    """Return the samples of a town."""
    X, y = part
    kept = (X["town"] == town).to_numpy()
    return X[kept], y[kept]


@pytest.mark.slow
def test_three_months_and_a_bad_one(classifier, tmp_path):
    """Drift is followed month after month; a month that harms a town is refused, the next one continues."""
    skops.io.dump(classifier, tmp_path / "model.skops")
    written(tmp_path / "0.csv", month(0))
    for number, sign in enumerate((0.3, -0.3, -1.0), 1):
        written(tmp_path / f"{number}.csv", month(number, 600, sign=sign))
    north, south = only("north", month(4, 1000)), only("south", month(5, 240, sign=-1.0))
    written(tmp_path / "bad.csv", north, south)
    written(tmp_path / "next.csv", month(6, 600, sign=-1.0))
    assert ortlearn(tmp_path, "versions", "models", "--add", "model.skops", "--samples", "0.csv")[0] == 0
    options = ("--label", "label", "--candidate", "refit", "--by", "town", "--largest-loss", "0.05")
    for number in (1, 2, 3):
        status, text = ortlearn(
            tmp_path, "adapt", "models", f"{number}.csv", "--reference", f"{number - 1}.csv", *options
        )
        assert status == 0, text
        assert f"version {number + 1} of models" in text
    folder = ModelFolder(tmp_path / "models")
    status, text = ortlearn(tmp_path, "adapt", "models", "bad.csv", *options)
    assert status == 4, text
    assert "group 'south' becomes worse" in text
    assert folder.current == 4
    status, text = ortlearn(tmp_path, "adapt", "models", "next.csv", *options)
    assert (status, text.split(":")[0], folder.current) == (3, "kept", 4)
    assert [item.get("outcome") for item in folder.history()] == [None, *["promoted"] * 3, "refused"]
    X, y = month(7, 600, sign=-1.0)
    adapted = ortlearn(tmp_path, "evaluate", folder.current_path, "next.csv", "--label", "label", "--json")[1]
    assert json.loads(adapted)["scores"]["accuracy"] > 0.85 > 0.7 > classifier.score(X, y)


@pytest.mark.slow
def test_a_kill_at_each_step_leaves_the_old_model(tmp_path):
    """Until the rename of ``current`` the old version is in use; the next run begins as if nothing was."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    first = adapt(Ridge().fit(X, X[:, 0]), (X, X @ [1.0, 2.0]), candidates=["refit"])
    source = tmp_path / "models"
    promote(first, source)
    program = subprocess.run(
        [sys.executable, "-m", "tests.lifecycle.killed_adaptations", source, tmp_path / "copies"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    *kills, last = map(json.loads, program.stdout.splitlines())
    renamed = [kill["before"][-1] for kill in kills if kill["before"][0] == "os.rename"]
    assert renamed == [f"{n}-0002.{s}" for n, s in (("model", "onnx"), ("model", "skops"))] + [
        "card-0002.html",
        "card-0002.md",
        "version-0002.json",
        "current",
    ]
    befores = [(kill["before"][0], kill["before"][-1]) for kill in kills]
    switched = befores.index(("os.rename", "current"))
    for number, kill in enumerate(kills):
        assert kill["killed"] and kill["whole"] and kill["hidden"] == []
        assert kill["current"] == (1 if number <= switched else 2)
        outcome, current, _ = kill["later"]
        assert (outcome, current > 1) == ("promoted" if number <= switched else "kept", True)
    assert not last["killed"]
    assert last["later"] == ["kept", 2, [1, 2]]


OPERATOR = """
import sys
import numpy as np
from sklearn.metrics import r2_score
from ortlearn.lifecycle import Gate, adapt

def patient(y, predicted, sample_weight=None):
    print("ready", flush=True)
    sys.stdin.readline()
    return r2_score(y, predicted, sample_weight=sample_weight)

X = np.random.default_rng(0).normal(size=(120, 2))
found = adapt(sys.argv[1], (X, X @ [1.0, -2.0]), candidates=["refit"], gate=Gate(patient), dry_run=False)
print(found.outcome, found.version)
"""


@pytest.mark.slow
def test_two_operators(tmp_path):
    """While one judges a model, the error of the other names that process, and nothing is lost."""
    X = np.random.default_rng(1).normal(size=(120, 2))
    folder = ModelFolder(tmp_path / "models")
    promote(adapt(Ridge().fit(X, X[:, 0]), (X, X @ [1.0, 2.0]), candidates=["refit"]), folder)
    pd.DataFrame(X, columns=["x0", "x1"]).assign(y=X[:, 1]).to_csv(tmp_path / "new.csv", index=False)
    first = subprocess.Popen(
        [sys.executable, "-c", OPERATOR, folder.path],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout.readline() == "ready\n"
        status, text = ortlearn(tmp_path, "adapt", "models", "new.csv", "--label", "y")
        assert status == 2
        assert f"is being changed by process {first.pid}: wait until it has ended" in text
        with pytest.raises(ValueError, match=f"process {first.pid}"):
            folder.rollback()
        assert folder.model().kind == "scikit-learn"  # readers are not locked out
        assert adapt(folder, (X, X[:, 0]), candidates=["refit"]).version is None
        out = first.communicate("\n" * 10_000)[0]
    finally:
        first.kill()
    assert out.splitlines()[-1] == "promoted 2"
    assert folder.current == 2
    assert ortlearn(tmp_path, "versions", "models", "--rollback")[0] == 0
    assert folder.current == 1
