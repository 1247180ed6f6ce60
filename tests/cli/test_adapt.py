"""The commands adapt and versions."""

import json

import numpy as np
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn.trainable.conversion import to_trainable
from tests.lifecycle.data import month


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    """Return a folder with a model, samples like those it was fitted on, and samples of a new concept."""
    folder = tmp_path_factory.mktemp("months")
    columns = make_column_transformer((StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["town"]))
    skops.io.dump(make_pipeline(columns, LogisticRegression()).fit(*month(0)), folder / "model.skops")
    for name, sign in (("old", 1.0), ("same", 1.0), ("new", -1.0)):
        X, y = month(len(name) + int(sign), sign=sign)
        X.assign(label=y).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.slow
def test_adaptation_of_a_file(run, months, tmp_path):
    out, card = tmp_path / "new.onnx", tmp_path / "card.html"
    found = run(
        *("adapt", months / "model.skops", months / "new.csv", "--label", "label", "--candidate", "refit"),
        *("--out", out, "--card", card, "--by", "town", "--json"),
    )
    assert found.status == 0
    result = json.loads(found.out)
    assert (result["outcome"], result["candidate"]) == ("promoted", "refit")
    assert result["verdict"]["gain"] > 0.2
    assert out.exists()
    assert "promoted" in card.read_text()
    scores = json.loads(run("evaluate", out, months / "new.csv", "--label", "label", "--json").out)["scores"]
    assert scores["accuracy"] > 0.85


@pytest.mark.slow
def test_exit_statuses(run, months):
    arguments = ("adapt", months / "model.skops")
    options = ("--label", "label", "--candidate", "refit")
    kept = run(*arguments, months / "same.csv", *options)
    assert (kept.status, kept.out.split(":")[0]) == (3, "kept")
    refused = run(*arguments, months / "new.csv", *options, "--max-bytes", "10")
    assert (refused.status, refused.out.split(":")[0]) == (4, "refused")
    assert "bytes, more than 10" in refused.out
    options = ("--label", "label", "--candidate", "warm_start", "--max-seconds", "1e-9")
    ended = run(*arguments, months / "new.csv", *options)
    assert ended.status == 0 and "The training ended after max_seconds=1e-09" in ended.err


@pytest.mark.slow
def test_folder_of_versions(run, months, tmp_path):
    folder = tmp_path / "models"
    assert (
        run("versions", folder, "--add", months / "model.skops", "--samples", months / "old.csv").status == 0
    )
    arguments = ("adapt", folder, months / "new.csv", "--label", "label", "--candidate", "refit")
    dry = run(*arguments, "--dry-run", "--reference", months / "old.csv")
    assert dry.status == 0
    assert "drift: 0 of 3 columns" in dry.out
    assert (folder / "current").read_text() == "model-0001.onnx\n"
    assert run(*arguments).status == 0
    assert (folder / "current").read_text() == "model-0002.onnx\nmodel-0001.onnx\n"
    listed = run("versions", folder).out
    assert "2*" in listed
    assert "accuracy" in listed
    assert json.loads(run("versions", folder, "--rollback", "--json").out)["current"] == 1
    assert json.loads(run("versions", folder, "--switch", "2", "--json").out)["current"] == 2


def test_models_with_another_interface_are_not_added(run, tmp_path):
    X, folder = np.random.default_rng(0).normal(size=(9, 3)), tmp_path / "models"
    models = {
        "a": Ridge().fit(X, X[:, 0]),
        "b": Ridge().fit(X, X[:, 1]),
        "narrow": Ridge().fit(X[:, :2], X[:, 0]),
        "classifier": LogisticRegression().fit(X, X[:, 0] > 0),
    }
    for name, model in models.items():
        (tmp_path / f"{name}.onnx").write_bytes(to_trainable(model).with_weights({}).SerializeToString())
    for name in ("a", "b"):
        assert run("versions", folder, "--add", tmp_path / f"{name}.onnx").status == 0
    for name, message in (
        ("narrow", "inputs of the model (X: float[n, 2])"),
        ("classifier", "outputs of the"),
    ):
        found = run("versions", folder, "--add", tmp_path / f"{name}.onnx")
        assert found.status == 2
        assert message in found.err and "differ from those of model-0002.onnx" in found.err
        assert (folder / "current").read_text() == "model-0002.onnx\nmodel-0001.onnx\n"


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("adapt", "model.skops", "new.csv"), "an adaptation needs labels"),
        (("adapt", "model.skops", "new.csv", "--label", "label", "--held-out", "2"), "share between 0 and 1"),
        (("adapt", "model.skops", "new.csv", "--label", "label", "--metric", "r2"), "metric='r2' must be"),
        (("adapt", "model.skops", "new.csv", "--label", "label", "--out", "a.zip"), "must end in .onnx"),
        (
            ("adapt", "model.skops", "new.csv", "--label", "label", "--by", "age"),
            "No group has 10 held-out samples",
        ),
        (("adapt", "empty", "new.csv", "--label", "label"), "empty has no version. Add one"),
        (("adapt", "nowhere", "new.csv", "--label", "label"), "No such file or folder"),
        (
            ("adapt", "model.skops", "new.csv", "--label", "town"),
            "column 'town' of new.csv has labels that are not classes of the model: [",
        ),
        (("versions", "nowhere"), "No such folder"),
        (("versions", "nowhere", "--rollback"), "No such folder"),
        (("versions", "nowhere", "--add", "model.skops"), "Columns of text need --samples"),
        (("versions", "nowhere", "--switch", "1"), "has no version 1"),
        (("versions", "nowhere", "--rollback", "--switch", "1"), "cannot be combined"),
    ],
)
def test_wrong_arguments(run, months, monkeypatch, arguments, message):
    (months / "empty").mkdir(exist_ok=True)
    monkeypatch.chdir(months)
    found = run(*arguments)
    assert found.status == 2
    assert message in found.err
