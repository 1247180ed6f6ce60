"""Sources that `fit_stream` must reject are rejected, and right ones are trained on afterwards."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from sklearn.linear_model import LinearRegression, LogisticRegression

from ortlearn.exceptions import OrtlearnError
from tests.faults.fault import End, Fault, Lost
from tests.faults.subjects import KINDS, check_same, weights
from tests.streams.wrong_sources import WRONG, X, Y

__all__ = ["FAULT"]


def _state(estimator: Any) -> tuple[Any, ...]:
    """Return what an error must not change."""
    trained = (weights(estimator), estimator.train_losses_) if hasattr(estimator, "trained_coef_") else ()
    return sorted(vars(estimator)), *trained


def _attempt(draw: Random, number: int, folder: Path) -> End:
    wrong = list(WRONG.values())[number]
    options = {"max_iter": 2, "batch_size": 10, "random_state": 0, "learning_rate": 0.1}
    model = LinearRegression() if wrong.regression else LogisticRegression()
    found, expected = (KINDS[number % 2](model, **options) for _ in range(2))
    if draw.random() < 0.5 and wrong.right is None:
        found.fit_stream([(X, Y)])
    before = _state(found)
    try:
        found.fit_stream(wrong.source(folder), **wrong.arguments)
    except (OrtlearnError, ValueError) as error:
        assert re.search(wrong.message, str(error), re.DOTALL), str(error)
    else:
        raise AssertionError("the source was accepted")
    if wrong.right is not None:
        right, resumed = wrong.right(folder), {"resume_from": found}
        found.fit_stream(right, **wrong.arguments, **resumed)
        check_same(found, expected.fit_stream(wrong.right(folder), **wrong.arguments))
        return End.CLEAN | End.RIGHT
    if _state(found) != before:
        raise Lost("the estimator changed")
    check_same(found.fit_stream([(X, Y)]), expected.fit_stream([(X, Y)]))
    return End.CLEAN | End.RIGHT


FAULT = Fault(
    "wrong source in `fit_stream`: files, columns, batches and iterators; another training afterwards",
    _attempt,
    tries=len(WRONG),
)
