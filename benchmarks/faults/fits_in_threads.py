"""Concurrent fits in eight threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import KINDS, X, Y, check_same, trainer

__all__ = ["FAULT", "run_concurrently"]


def run_concurrently(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return the results of functions that run at the same time, each in a thread."""
    start = threading.Barrier(len(functions))

    def call(function):
        start.wait()
        return function()

    sys.setswitchinterval(1e-5)  # switch between threads as often as possible
    with ThreadPoolExecutor(len(functions)) as pool:
        return list(pool.map(call, functions))


def _attempt(draw: Random, number: int, folder: Path) -> End:
    """Run eight fits, half of them equal, so that they share cached sessions."""
    kind = KINDS[number % 2]
    seeds = [draw.randrange(4) for _ in range(8)]
    fits = [lambda seed=seed: trainer(kind, random_state=seed).fit(X, Y) for seed in seeds]
    for found, seed in zip(run_concurrently(fits), seeds, strict=True):
        check_same(found, trainer(kind, random_state=seed).fit(X, Y))
    return End.RIGHT


FAULT = Fault("`fit` in 8 threads at once", _attempt, tries=20)
