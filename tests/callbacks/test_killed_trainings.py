"""Trainings that are killed at random moments leave whole checkpoints, and can be resumed."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.needs_callbacks
def test_kills_at_random_moments(tmp_path):
    command = [sys.executable, "-m", "tests.callbacks.killed_trainings", str(tmp_path), "40"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "40 trainings killed, 10 resumed to the same weights\n"
