"""Type checkers accept a sample of user code, know its types, and find its errors; the sample runs."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.annotations import user_code

SAMPLE = Path(user_code.__file__)
#: Commands of type checkers by their package; make lint installs both.
CHECKERS = {
    "mypy": ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary"],
    "basedpyright": ["--level", "error", "--pythonpath", sys.executable],
}
WRONG = """
from ortlearn import OrtGradientOptimizer
from ortlearn.losses import HuberLoss
number: int = OrtGradientOptimizer(None).fit([[0.0]], [0.0])
HuberLoss(delta="one")
"""


def check(name, path):
    command = [sys.executable, "-m", name, *CHECKERS[name], str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=SAMPLE.parents[2])


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKERS)
def test_sample_of_user_code(name, tmp_path):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed: make lint installs it")
    done = check(name, SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    found = check(name, wrong).stdout
    assert "wrong.py:5" in found and "delta" in found


def test_sample_runs(tmp_path):
    assert user_code.use(user_code.train(), tmp_path) > 0
    assert user_code.train_a_file() is not None
    assert 0 <= user_code.predict_intervals_and_sets() <= 1
