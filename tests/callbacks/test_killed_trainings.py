"""Trainings killed at random moments are resumed and give bitwise the same result."""

import re
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.sweep(0, slow=1)
@pytest.mark.parametrize("tries", ["1", "3"])
@pytest.mark.needs_callbacks
def test_kills_at_random_moments(tmp_path, tries):
    command = [sys.executable, "-m", "tests.callbacks.killed_trainings", str(tmp_path), tries]
    result = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert result.returncode == 0, result.stderr
    n_killed, n_within = map(int, re.findall(r"\d+", result.stdout))
    assert n_killed >= 3 and n_within > 0
