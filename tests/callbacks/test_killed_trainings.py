"""Trainings that are killed at random moments are resumed, and end with the bits of one that ran through."""

import re
import subprocess
import sys

import pytest


@pytest.mark.needs_callbacks
@pytest.mark.parametrize("n_tries, kinds", [(2, ["batches"]), pytest.param(3, [], marks=pytest.mark.slow)])
def test_kills_at_random_moments(n_tries, kinds, tmp_path):
    command = [sys.executable, "-m", "tests.callbacks.killed_trainings", str(tmp_path), str(n_tries), *kinds]
    result = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert result.returncode == 0, result.stderr
    n_killed, n_within = map(int, re.findall(r"\d+", result.stdout))
    assert n_killed >= n_tries and (kinds or n_within > 0)
