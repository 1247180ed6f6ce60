"""A fitted estimator predicts in eight threads while another thread fits a clone."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
from sklearn.base import clone

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.fits_in_threads import run_concurrently
from benchmarks.faults.subjects import KINDS, X, Y, check_same, trainer

__all__ = ["FAULT"]


def _attempt(draw: Random, number: int, folder: Path) -> End:
    kind = KINDS[number % 2]
    expected = trainer(kind).fit(X, Y)
    predicted = expected.predict(X)
    found = trainer(kind).fit(X, Y)  # it first predicts in all threads at once

    def predict():
        return [found.predict(X) for _ in range(20)]

    *results, trained = run_concurrently([predict] * 8 + [lambda: clone(found).fit(X, Y)])
    for result in results:
        np.testing.assert_array_equal(result, [predicted] * 20)
    check_same(trained, expected)
    return End.RIGHT


FAULT = Fault("`predict` of one estimator in 8 threads during the `fit` of a clone", _attempt, tries=20)
