"""The shell scripts of the page on nightly adaptations run as they are written."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import skops.io
import yaml

from tests.lifecycle.data import month

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "every_night.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def with_labels(number, sign=1.0):
    X, y = month(number, sign=sign)
    return X.rename(columns={"town": "region"}).assign(churned=y)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for a POSIX shell")
def test_scripts(classifier, tmp_path):
    with_labels(0).to_csv(tmp_path / "january.csv", index=False)
    with_labels(1, sign=-1.0).to_csv(tmp_path / "february.csv", index=False)
    january = with_labels(0)
    model = classifier.__sklearn_clone__()
    model.steps[0][1].transformers[1] = (*model.steps[0][1].transformers[1][:2], ["region"])
    skops.io.dump(model.fit(january.drop(columns="churned"), january["churned"]), tmp_path / "model.skops")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "ortlearn").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ortlearn "$@"\n')
    (programs / "ortlearn").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PAGE.parents[2]),
    }
    setup, night = blocks("bash")
    (tmp_path / "adapt.sh").write_text(night)
    (workflow,) = blocks("yaml")
    steps = [step["run"] for step in yaml.safe_load(workflow)["jobs"]["adapt"]["steps"] if "run" in step]
    crontab, airflow = blocks("text")
    task = ast.parse(airflow).body[0].value
    options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in task.keywords}
    assert crontab.split()[:5] == ["0", "2", "*", "*", "*"] and options["cwd"] == "/srv/churn"
    lines = [crontab.split(maxsplit=5)[5].replace("/srv/churn", "."), options["bash_command"]]
    scripts = [setup, *(step for step in steps if not step.startswith("pip")), *lines]
    outputs = [
        subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for script in scripts
    ]
    assert "promoted model-0002.onnx" in outputs[1]
    assert "2*" in outputs[2]
    assert (outputs[3], (tmp_path / "adapt.log").read_text().split()[-1]) == ("", "kept")
    assert outputs[4].split()[-1] == "kept"
    assert (tmp_path / "card.html").exists()
