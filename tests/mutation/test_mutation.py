"""The search finds the test that notices a change, or reports that no test does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.subjects import find_subjects
from tests.mutation.survivors import SURVIVORS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
ROOT = Path(__file__).parents[2]
BLIND = """
import numpy as np
from ortlearn.losses import {name}
from ortlearn.testing import check_loss

def test_it_runs():
    check_loss({name}())
"""


def search(*arguments):
    command = [sys.executable, "-m", "tests.mutation", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)


@pytest.mark.slow
def test_a_change_is_noticed():
    done = search(
        "loss:hinge", "penalty:none", "--verbose", "--tests", "tests/losses/test_losses.py", "tests/penalties"
    )
    assert done.returncode == 0, done.stderr
    assert "loss:hinge forward" in done.stdout and "test_losses.py::test_" in done.stdout
    assert "2 changes of 2 plugins" in done.stdout


@pytest.mark.slow
def test_tests_without_a_comparison_notice_nothing(tmp_path):
    blind = tmp_path / "test_blind.py"
    blind.write_text(BLIND.format(name="HingeLoss"))
    done = search("loss:hinge", "--tests", blind)
    assert done.returncode == 1 and "no test notices: loss:hinge forward" in done.stderr


@pytest.mark.slow
def test_failing_tests_prove_nothing(tmp_path):
    blind = tmp_path / "test_blind.py"
    blind.write_text(BLIND.format(name="HingeLoss") + "    assert False")
    done = search("loss:hinge", "--tests", blind)
    assert done.returncode == 1 and "fails without any change" in done.stderr


def test_every_plugin_is_a_subject():
    subjects = find_subjects()
    kinds = {kind: [s for s in subjects if s.kind == kind] for kind in {s.kind for s in subjects}}
    assert len({str(subject) for subject in subjects}) == len(subjects)
    assert kinds.keys() == {"loss", "penalty", "learning_rate", "schedule", "rule", "model"}
    assert len(kinds["rule"]) > 100 and len(kinds["model"]) > 100
    assert {name.partition(" ")[0] for name in SURVIVORS} <= {str(subject) for subject in subjects}
    assert all(SURVIVORS.values())
