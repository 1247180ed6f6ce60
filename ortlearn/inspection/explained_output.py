"""The output of a model that explanations are about."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import ConversionError
from ..functions import DifferentiableFunction, differentiable
from ..trainable.conversion import source_task

__all__ = ["columns_of_output", "explained_function", "explained_method", "selection"]

ORDER = ("predict_proba", "decision_function", "predict", "score_samples", "transform")


def explained_method(estimator: Any, method: str) -> str:
    """Return the method to explain: by default probabilities, or decision values, or predictions."""
    if method != "auto":
        return method
    if not hasattr(estimator, "get_params"):  # an ONNX file
        return "predict_proba" if source_task(estimator) == "classification" else "predict"
    is_labelled = hasattr(estimator, "classes_") or hasattr(estimator, "decision_function")
    names = ORDER if is_labelled else ("predict", *ORDER[3:])
    return next(name for name in names if hasattr(estimator, name))


def explained_function(estimator: Any, method: str, X: Any = None) -> DifferentiableFunction:
    """Return a function of the method, also for frames with text; a function is returned unchanged."""
    if isinstance(estimator, DifferentiableFunction):
        return estimator
    name = explained_method(estimator, method)
    try:
        return differentiable(estimator, name)
    except ConversionError:
        if not hasattr(X, "columns"):
            raise
        return differentiable(estimator, name, X=X)


def columns_of_output(function: DifferentiableFunction, value: np.ndarray, output: Any) -> np.ndarray | None:
    """Return the explained column of each sample: a given one, or that of the largest value."""
    if value.ndim == 1:
        function.column_of(output)
        return None
    if output is None:
        return value.argmax(axis=1)
    return np.full(len(value), function.column_of(output, value.shape[1:])) % value.shape[1]


def selection(value: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    """Return the weights of outputs that select one column for each sample."""
    if columns is None:
        return np.ones_like(value)
    u = np.zeros_like(value)
    u[np.arange(len(u)), columns] = 1
    return u
