"""A callback, a Python loss or a scoring function raises an error at one of its calls."""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import X, Y, check_same, check_unchanged, snapshot, trainer
from ortlearn import OrtGradientForwardBackwardOptimizer

__all__ = ["FAULT"]

ERRORS = (ValueError, ZeroDivisionError, MemoryError, OSError)


class Calls:
    """Counter of calls that raises an error at one of them."""

    def __init__(self, error=None, at=0):
        self.error, self.at, self.n = error, at, 0

    def count(self):
        self.n += 1
        if self.n == self.at:
            raise self.error


class Callback:
    """Callback whose hooks are counted."""

    def __init__(self, calls):
        self.calls = calls

    def setup(self, estimator, context):
        self.calls.count()

    def on_fit_task_begin(self, estimator, context):
        self.calls.count()

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.calls.count()

    def teardown(self, estimator, context):
        self.calls.count()


class Loss:
    """Counted half squared error."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, expected, predicted):
        self.calls.count()
        difference = predicted - expected
        return (difference**2).sum(axis=1) / 2, difference


class Score:
    """Counted negative squared error."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, estimator, X, y):
        self.calls.count()
        return -float(((estimator.predict(X) - y) ** 2).mean())


def _with(where: str, calls: Calls):
    """Return an estimator and the parameters to set before each fit."""
    options: dict = {"validation_every": 1}
    match where:
        case "loss":
            options["learning_loss"] = Loss(calls)
        case "score":
            options["scoring"] = Score(calls)
    found = trainer(OrtGradientForwardBackwardOptimizer, max_iter=3, **options)
    return found.set_callbacks(Callback(calls)) if where == "callback" else found


def _fit(estimator):
    return estimator.fit(X[:150], Y[:150], X_val=X[150:], y_val=Y[150:])


def _attempt(draw: Random, number: int, folder: Path) -> End:
    where = ("callback", "loss", "score")[number % 3]
    calls = Calls()
    found = _fit(_with(where, calls))
    expected, before, n_calls = _fit(_with(where, Calls())), snapshot(found), calls.n
    first = 4 if where == "loss" else 1  # calls 2 and 3 check the gradient, and may fail
    error = draw.choice(ERRORS)("on purpose")
    calls.error, calls.at, calls.n = error, draw.randint(first, n_calls), 0
    try:
        _fit(found)
    except BaseException as caught:
        assert error in (caught, caught.__cause__) and "on purpose" in str(caught), caught
    else:
        raise AssertionError("the error was swallowed")
    calls.at = 0
    check_unchanged(found, before)
    check_same(_fit(found), expected)
    return End.CLEAN | End.RIGHT


FAULT = Fault("exception raised by a callback, a loss in Python or a scorer", _attempt, tries=60)
