"""Advice for a training that diverges: the features of the largest scale."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from .input_validation import InputFeatures
from .problem import Problem

__all__ = ["scale_advice"]

#: Root mean square of a feature from which on it is named.
LARGE = 10.0
#: Number of features that are named, and of rows that are looked at.
MOST_NAMED, MOST_ROWS = 3, 10_000


def scale_advice(problem: Problem, features: InputFeatures, X: Any) -> str:
    """Return a sentence on the features of the largest scale; empty where none is large.

    The features are those of the last step of a pipeline, after the steps before it.
    """
    if not problem.trainable.takes_numbers or getattr(X, "ndim", 0) != 2:
        return ""
    rows, names = _inputs_of_last_step(problem.source, X[:: max(1, X.shape[0] // MOST_ROWS)], features.names)
    if rows is None:
        return ""
    values = (abs(rows).toarray() if issparse(rows) else np.asarray(rows)).astype(np.float64)
    scales = np.sqrt(np.mean(values**2, axis=0))
    largest = [int(i) for i in np.argsort(-scales, kind="stable")[:MOST_NAMED]]
    largest = [i for i in largest if scales[i] >= max(LARGE, scales[largest[0]] / 10)]
    if not largest:
        return ""
    said = ", ".join(f"{_name(names, i)} ({scales[i]:.2g})" for i in largest)
    solver = "" if problem.updates.is_solver else ", or set learning_rate='auto' or 'LBFGS'"
    return (
        f" Features of the largest scale, by their root mean square: {said}. Put a StandardScaler before the "
        f"model in a pipeline{solver}."
    )


def _inputs_of_last_step(source: Any, X: Any, names: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
    """Return what the last step of a pipeline gets, and its names; X itself for other models."""
    if not isinstance(source, Pipeline) or len(source.steps) < 2:
        return X, names
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = source[:-1]
            return steps.transform(X), None if names is None else steps.get_feature_names_out(names)
    except Exception:  # steps that take other columns, or give no names: there is nothing to say then
        return None, None


def _name(names: np.ndarray | None, number: int) -> str:
    return f"column {number}" if names is None else repr(str(names[number]))
