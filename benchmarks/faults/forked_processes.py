"""A process forks after training and predicting; the child continues the training."""

from __future__ import annotations

import gc
from pathlib import Path
from random import Random

import numpy as np
from sklearn.base import clone

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.processes import forked, wait
from benchmarks.faults.subjects import KINDS, X, Y, check_same, trainer
from ortlearn.runtime import cache

__all__ = ["FAULT"]


def _attempt(draw: Random, number: int, folder: Path) -> End:
    found = trainer(KINDS[number % 2], n_jobs=2).fit(X, Y)
    predicted, expected = found.predict(X), clone(found).fit(X, Y)
    further = trainer(KINDS[number % 2], n_jobs=2).fit(X, Y).partial_fit(X, Y)

    def use():
        np.testing.assert_array_equal(found.predict(X), predicted)
        check_same(clone(found).fit(X, Y), expected)
        check_same(found.partial_fit(X, Y), further)
        found.__dict__.clear()
        cache.clear_cache()
        gc.collect()

    children = [forked(use), forked(lambda: wait(forked(use)) and exit(1))]
    np.testing.assert_array_equal(found.predict(X), predicted)
    assert [wait(child) for child in children] == [0, 0], "a child failed"
    use()
    return End.RIGHT


FAULT = Fault("fork after `fit`: a child and its own child continue the training", _attempt, tries=20)
