"""Predictions, losses and score of a model on samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score

__all__ = ["default_score", "tested"]

#: Smallest probability in a loss: the resolution of float32.
SMALLEST = float(np.finfo(np.float32).eps)


def tested(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, predictions and the loss of each sample."""
    y, predicted = np.asarray(y), np.asarray(estimator.predict(X))
    return y, predicted, _losses(estimator, X, y, predicted)


def default_score(estimator: Any) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return accuracy or R2."""
    return accuracy_score if is_classifier(estimator) else r2_score


def _losses(estimator: Any, X: Any, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the loss of each sample."""
    if is_regressor(estimator):
        errors = (y.astype(np.float64) - predicted.reshape(y.shape)) ** 2
        return errors.reshape(len(y), -1).mean(axis=1)
    if y.ndim == 1 and hasattr(estimator, "predict_proba"):
        columns = {label: column for column, label in enumerate(estimator.classes_.tolist())}
        probabilities = np.asarray(estimator.predict_proba(X))
        places = [columns.get(label, -1) for label in y.tolist()]
        own = np.where(np.array(places) < 0, 0.0, probabilities[np.arange(len(y)), places])
        return -np.log(np.maximum(own, SMALLEST))
    return (y != predicted.reshape(y.shape)).reshape(len(y), -1).mean(axis=1)
