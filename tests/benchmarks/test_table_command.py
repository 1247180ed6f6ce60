"""Command line of the benchmark tables."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks.first_hour", "--only", "few_samples raw Ridge", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_results_are_printed_and_written(tmp_path):
    path = tmp_path / "found.json"
    done = run("--write", str(path), "--params", '{"learning_rate": 0.02}')
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text())
    assert found["summary"]["pairs"] == len(found["rows"]) == 1
    assert found["rows"][0]["fresh"]["rate"] == "LearningRateSGD(eta0=0.02)"
    assert "few_samples raw Ridge" in done.stdout and "target 0.9" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("epochs", "code"), [(100, 0), (1, 1)])
def test_check(epochs, code):
    params = {"learning_rate": 0.02, "max_iter": epochs, "learning_penalty": None}
    assert run("--check", "--params", json.dumps(params)).returncode == code
