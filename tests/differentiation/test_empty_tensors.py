"""Gradients of empty tensors, in a process that may be killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.differentiation.empty_models import MODELS, compute

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("opset", [13, 14, 18])
@pytest.mark.parametrize(
    "name", ["MatMul of matrices", "Gemm", "no indices", "no indices of two axes", "Tile"]
)
def test_gradient_of_an_empty_batch(name, opset):
    text, shapes = MODELS[name]
    compute(text, opset, *shapes)


@pytest.mark.slow
def test_process_is_not_terminated():
    command = [sys.executable, "-m", "tests.differentiation.empty_models", "13", "15", "18", "19", "21"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("survived\n")
