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

__all__ = [
    "ParameterHashes",
    "PretrainedModel",
    "hashes_of",
    "pretrained_model",
    "provide_pretrained",
]

#: Parameters of updates, penalty and number of epochs.
OF_UPDATES = ("learning_rate", "learning_penalty", "average", "clip_norm", "clip_value", "max_iter", "exc")


@dataclass(frozen=True)
class ParameterHashes:
    """Hashes of the parameters of an estimator: those in ``OF_UPDATES``, and the others."""

    updates: str
    model: str


@dataclass(frozen=True)
class PretrainedModel:
    """The fitted model for an expected call of ``fit``; None for a call that must train."""

    hashes: ParameterHashes | None
    y: Any
    model: FittedModel | None


_CALLS: ContextVar[deque[PretrainedModel] | None] = ContextVar("ortlearn_trained", default=None)


def hashes_of(estimator: Any) -> ParameterHashes | None:
    """Return the hashes of the parameters of an estimator; None if a parameter cannot be hashed."""
    parameters = estimator.get_params(deep=False)
    updates = {name: parameters.pop(name) for name in OF_UPDATES}
    try:
        return ParameterHashes(joblib.hash(updates), joblib.hash(parameters))
    except Exception:  # joblib cannot hash a parameter, such as a lambda function
        return None


@contextmanager
def provide_pretrained(calls: deque[PretrainedModel]) -> Iterator[None]:
    """Provide the results of calls of ``fit`` in this context and thread, in this order."""
    token = _CALLS.set(calls)
    try:
        yield
    finally:
        _CALLS.reset(token)


def pretrained_model(estimator: Any, y: Any) -> FittedModel | None:
    """Return the model for this call of ``fit``; None if it is not the expected call, or must train."""
    calls = _CALLS.get()
    if not calls or not _is_same(calls[0].y, y) or calls[0].hashes != hashes_of(estimator):
        return None
    return calls.popleft().model


def _is_same(expected: Any, y: Any) -> bool:
    if expected is None or y is None:
        return expected is y
    if hasattr(expected, "tocsr"):
        return type(expected) is type(y) and expected.shape == y.shape and (expected != y).nnz == 0
    return np.array_equal(np.asarray(expected), np.asarray(y))
