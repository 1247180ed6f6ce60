"""Gradients of tensors without elements, in a process that may be stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.differentiation.empty_models import MODELS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_stopped(name):
    command = [sys.executable, "-m", "tests.differentiation.empty_models", name, "13", "15", "18", "19", "21"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
