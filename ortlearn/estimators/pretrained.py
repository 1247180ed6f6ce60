"""Models that a search has trained in advance, which calls of ``fit`` return."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from ..fitting.fitted_model import FittedModel

__all__ = [
    "ParameterKeys",
    "PretrainedModel",
    "key_of",
    "keys_of",
    "pretrained_model",
    "provide_pretrained",
]

#: Parameters of updates and penalty.
OF_UPDATES = ("learning_rate", "learning_penalty", "average", "clip_norm", "clip_value", "exc")


@dataclass(frozen=True)
class ParameterKeys:
    """Keys of the parameters of an estimator: ``OF_UPDATES``, the number of epochs, and the others."""

    updates: Hashable
    max_iter: Hashable
    model: Hashable


@dataclass(frozen=True)
class PretrainedModel:
    """The fitted model for an expected call of ``fit``; None for a call that must train."""

    keys: ParameterKeys | None
    y: Any
    model: FittedModel | None


_CALLS: ContextVar[deque[PretrainedModel] | None] = ContextVar("ortlearn_trained", default=None)


def keys_of(estimator: Any) -> ParameterKeys | None:
    """Return the keys of the parameters of an estimator; None if a parameter cannot be hashed."""
    parameters = estimator.get_params(deep=False)
    try:
        updates = tuple(key_of(parameters.pop(name)) for name in OF_UPDATES)
        max_iter = key_of(parameters.pop("max_iter"))
        return ParameterKeys(
            updates, max_iter, tuple((name, key_of(parameters[name])) for name in parameters)
        )
    except Exception:  # joblib cannot hash a parameter, such as a lambda function
        return None


def key_of(value: Any) -> Hashable:
    """Return a key that is equal for equal values; a multiple as fast as joblib for estimators."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return kind, repr(value)
    if kind in (list, tuple):
        return kind, tuple(map(key_of, value))
    if hasattr(value, "get_params") and not isinstance(value, type):  # also the attributes of a fitted one
        return kind, tuple((name, key_of(own)) for name, own in sorted(vars(value).items()))
    return kind, joblib.hash(value)


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
    if not calls or not _is_same(calls[0].y, y) or calls[0].keys != keys_of(estimator):
        return None
    return calls.popleft().model


def _is_same(expected: Any, y: Any) -> bool:
    if expected is None or y is None:
        return expected is y
    if hasattr(expected, "tocsr"):
        return type(expected) is type(y) and expected.shape == y.shape and (expected != y).nnz == 0
    return np.array_equal(np.asarray(expected), np.asarray(y))
