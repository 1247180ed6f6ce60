"""The process reaches a memory limit."""

from __future__ import annotations

import resource
from pathlib import Path
from random import Random

import numpy as np
from sklearn.neural_network import MLPRegressor

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import KINDS, check_same, trainer
from ortlearn.exceptions import ExecutionError

__all__ = ["FAULT"]


def _size() -> int:
    """Return the size of the address space of the process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _attempt(draw: Random, number: int, folder: Path) -> End:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 20)).astype(np.float32)
    y = X[:, 0].copy()
    model = MLPRegressor(hidden_layer_sizes=(400,), max_iter=1, random_state=0)
    options = {"estimator": model, "max_iter": 2, "batch_size": 5000}
    found = trainer(KINDS[number % 2]).set_params(**options)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    end = End(0)
    resource.setrlimit(resource.RLIMIT_AS, (_size() + draw.randrange(48 << 20), hard))
    try:
        found.fit(X, y).predict(X)
    except (MemoryError, ExecutionError) as error:
        assert isinstance(error, MemoryError) or "memory" in str(error).lower(), error
        end |= End.CLEAN
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    expected = trainer(KINDS[number % 2]).set_params(**options).fit(X, y)
    if not end:
        check_same(found, expected)
    check_same(found.fit(X, y), expected)
    return end | End.RIGHT


FAULT = Fault("memory limit of the process reached in `fit` or `predict`", _attempt, tries=40)
