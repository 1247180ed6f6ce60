"""Sources that `fit_stream` must reject are rejected, and right ones are trained on afterwards."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks.faults.fault import End, Fault, Lost
from benchmarks.faults.subjects import check_same, weights
from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import OrtlearnError
from tests.data.wrong_sources import WRONG, X, Y

__all__ = ["FAULT"]

#: Sources of an attempt.
SOURCES = 10
OPTIONS = {"max_iter": 2, "batch_size": 10, "random_state": 0, "learning_rate": 0.1}


def _state(estimator: Any) -> tuple[Any, ...]:
    """Return what an error must not change."""
    trained = (weights(estimator), estimator.train_losses_) if hasattr(estimator, "trained_coef_") else ()
    return sorted(vars(estimator)), *trained


def _check(found: Any, wrong: Any, folder: Path) -> None:
    """Check the error of a wrong source, and that it changes nothing."""
    before = _state(found)
    try:
        found.fit_stream(wrong.source(folder), **wrong.arguments)
    except (OrtlearnError, ValueError) as error:
        assert re.search(wrong.message, str(error), re.DOTALL), str(error)
    else:
        raise AssertionError("the source was accepted")
    if wrong.right is not None:  # the training has begun
        found.fit_stream(wrong.right(folder), **wrong.arguments, resume_from=found)
        expected = OrtGradientOptimizer(LogisticRegression(), **OPTIONS)
        check_same(found, expected.fit_stream(wrong.right(folder), **wrong.arguments))
    elif _state(found) != before:
        raise Lost("the estimator changed")


def _attempt(draw: Random, number: int, folder: Path) -> End:
    names, expected = list(WRONG), OrtGradientOptimizer(LogisticRegression(), **OPTIONS).fit_stream([(X, Y)])
    found = OrtGradientOptimizer(LogisticRegression(), **OPTIONS)
    for place in range(SOURCES):
        wrong, own = WRONG[names[(number * SOURCES + place) % len(names)]], folder / str(place)
        own.mkdir()
        model = LinearRegression() if wrong.regression else LogisticRegression()
        fresh = OrtGradientOptimizer(model, **OPTIONS)
        _check(fresh if wrong.regression or wrong.right else found, wrong, own)
        if place == draw.randrange(SOURCES):
            found.fit_stream([(X, Y)])
    check_same(found.fit_stream([(X, Y)]), expected)
    return End.CLEAN | End.RIGHT


FAULT = Fault(
    "wrong source in `fit_stream`: files, columns, batches and iterators; another training afterwards",
    _attempt,
    tries=-(-len(WRONG) // SOURCES),
    repeats=SOURCES,
)
