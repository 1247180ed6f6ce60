"""Random graphs by the C++ builder: equal to our own rules or refused, in processes that may be killed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.needs_training
def test_random_graphs():
    command = [sys.executable, "-m", "tests.differentiation.ort_random_graphs", "0", "150"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert found["bad"] == []
    assert found["counts"]["right"] > 110
