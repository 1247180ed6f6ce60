"""Gradients of random graphs by the C++ builder are equal to the built-in rules or rejected."""

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
