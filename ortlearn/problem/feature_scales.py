"""Advice for a training that diverges: the features with the largest scale."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from .input_validation import InputFeatures
from .problem import Problem

__all__ = ["scale_advice"]

#: Smallest root mean square of a feature that is reported.
LARGE = 10.0
#: Largest number of features that are reported, and approximate number of samples that are read.
MOST_NAMED, MOST_SAMPLES = 3, 10_000


def scale_advice(problem: Problem, features: InputFeatures, X: Any) -> str:
    """Return a sentence about the features with the largest scale; empty if no scale is large.

    For a pipeline, these are the inputs of its last step.
    """
    if not problem.trainable.takes_numbers or getattr(X, "ndim", 0) != 2:
        return ""
    samples, names = _inputs_of_last_step(
        problem.source, X[:: max(1, X.shape[0] // MOST_SAMPLES)], features.names
    )
    if samples is None:
        return ""
    values = (abs(samples).toarray() if issparse(samples) else np.asarray(samples)).astype(np.float64)
    scales = np.sqrt(np.mean(values**2, axis=0))
    largest = [int(i) for i in np.argsort(-scales, kind="stable")[:MOST_NAMED]]
    largest = [i for i in largest if scales[i] >= max(LARGE, scales[largest[0]] / 10)]
    if not largest:
        return ""
    listed = ", ".join(f"{_name(names, i)} ({scales[i]:.2g})" for i in largest)
    solver = "" if problem.updates.is_solver else ", or set learning_rate='auto' or 'LBFGS'"
    return (
        f" The features with the largest root mean square are {listed}. Put a StandardScaler before the "
        f"model in a pipeline{solver}."
    )


def _inputs_of_last_step(source: Any, X: Any, names: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
    """Return the input of the last step of a pipeline and its names; X itself for other models."""
    if not isinstance(source, Pipeline) or len(source.steps) < 2:
        return X, names
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = source[:-1]
            return steps.transform(X), None if names is None else steps.get_feature_names_out(names)
    except Exception:  # steps that need other columns, or return no names: there is no advice
        return None, None


def _name(names: np.ndarray | None, number: int) -> str:
    return f"column {number}" if names is None else repr(str(names[number]))
