"""Trainings and predictions in workers of joblib (loky, threading) and in spawned processes."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from random import Random

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import KINDS, X, Y, check_same, trainer

__all__ = ["FAULT"]


def _fit(kind, seed):
    return trainer(kind, random_state=seed).fit(X, Y)


def _attempt(draw: Random, number: int, folder: Path) -> End:
    where = ("loky", "threading", "spawn")[number % 3]
    kind = KINDS[number % 2]
    expected = [_fit(kind, seed) for seed in range(4)]
    predicted = [found.predict(X) for found in expected]
    if where == "spawn":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            trained = pool.starmap(_fit, [(kind, seed) for seed in range(4)])
            results = [pool.apply(found.predict, (X,)) for found in expected]
    else:
        workers = Parallel(n_jobs=2, backend=where)
        trained = workers(delayed(_fit)(kind, seed) for seed in range(4))
        results = workers(delayed(found.predict)(X) for found in expected)
        get_reusable_executor().shutdown()  # its workers outlive this process otherwise
    for found, wanted in zip(trained, expected, strict=True):
        check_same(found, wanted)
    np.testing.assert_array_equal(results, predicted)
    return End.RIGHT


FAULT = Fault(
    "`fit` and `predict` in workers of loky, threading and spawned processes", _attempt, tries=6, seconds=120
)
