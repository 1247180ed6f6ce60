"""Models that a search has trained in advance, which calls of ``fit`` return."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from ..fitting.fitted_model import FittedModel

__all__ = ["OF_UPDATES", "Fingerprint", "Trained", "fingerprint_of", "hand_over", "handed_over"]

#: Parameters of updates, penalty and number of epochs.
OF_UPDATES = ("learning_rate", "learning_penalty", "average", "clip_norm", "clip_value", "max_iter", "exc")


@dataclass(frozen=True)
class Fingerprint:
    """Hashes of the parameters of an estimator: those in ``OF_UPDATES``, and the others."""

    updates: str
    model: str


@dataclass(frozen=True)
class Trained:
    """The fitted model for an expected call of ``fit``; None for a call that must train."""

    fingerprint: Fingerprint | None
    y: Any
    model: FittedModel | None


_CALLS: ContextVar[deque[Trained] | None] = ContextVar("ortlearn_trained", default=None)


def fingerprint_of(estimator: Any) -> Fingerprint | None:
    """Return the fingerprint of an estimator; None if a parameter cannot be hashed."""
    parameters = estimator.get_params(deep=False)
    updates = {name: parameters.pop(name) for name in OF_UPDATES}
    try:
        return Fingerprint(joblib.hash(updates), joblib.hash(parameters))
    except Exception:  # joblib cannot hash a parameter, such as a lambda function
        return None


@contextmanager
def hand_over(calls: deque[Trained]) -> Iterator[None]:
    """Provide the results of the calls of ``fit`` in this context and thread, in this order."""
    token = _CALLS.set(calls)
    try:
        yield
    finally:
        _CALLS.reset(token)


def handed_over(estimator: Any, y: Any) -> FittedModel | None:
    """Return the model for this call of ``fit``; None if it is not the expected call, or must train."""
    calls = _CALLS.get()
    if not calls or not _is_same(calls[0].y, y) or calls[0].fingerprint != fingerprint_of(estimator):
        return None
    return calls.popleft().model


def _is_same(expected: Any, y: Any) -> bool:
    if expected is None or y is None:
        return expected is y
    if hasattr(expected, "tocsr"):
        return type(expected) is type(y) and expected.shape == y.shape and (expected != y).nnz == 0
    return np.array_equal(np.asarray(expected), np.asarray(y))
