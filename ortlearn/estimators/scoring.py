"""The score of a fitted model: accuracy, R2, a log-likelihood or minus the inertia."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from ..preprocessing.columns import as_array_like
from .label_arrays import per_position, with_masked_labels
from .samples import flat_weights

if TYPE_CHECKING:
    from .fitted_model import FittedModel

__all__ = ["accuracy_of_positions", "r2_of_positions", "score_of"]


def score_of(model: FittedModel, X: Any, y: Any, sample_weight: Any, predict: Callable[[Any], Any]) -> float:
    """Return the score of a model for samples, of what ``predict`` returns for them."""
    head = model.problem.trainable.head
    y, sample_weight = as_array_like(y, "y"), flat_weights(sample_weight)
    if head is not None and head.task == "unsupervised":
        losses = model.losses(X, None, None).astype(np.float64)
        if head.averaged:
            return -float(np.average(losses, weights=sample_weight))
        return -float(losses.sum() if sample_weight is None else np.dot(sample_weight, losses))
    from sklearn.metrics import accuracy_score, r2_score  # longer to import than all of ortlearn

    if model.problem.is_multilabel:
        right = (_dense(predict(X)) == _dense(y)).all(axis=1)
        return float(np.average(right, weights=sample_weight))
    if head is not None and head.transformed is not None:
        return r2_score(y, model.transform(X), sample_weight=sample_weight)
    if head is not None and head.positions is not None:
        score = r2_of_positions if head.task == "regression" else accuracy_of_positions
        return score(y, predict(X), sample_weight)
    if np.ndim(y) > 2:
        return r2_of_positions(y, predict(X), sample_weight)
    metric = accuracy_score if model.problem.targets.classes is not None else r2_score
    return metric(y, predict(X), sample_weight=sample_weight)


def accuracy_of_positions(y: Any, predicted: np.ndarray, sample_weight: Any) -> float:
    """Return the share of positions that have the right class, weighted."""
    y = with_masked_labels(y, sample_weight)
    right = (predicted == _like(y, predicted)).reshape(len(predicted), -1)
    return float(np.average(right, weights=_weights(sample_weight, y)))


def r2_of_positions(y: Any, predicted: np.ndarray, sample_weight: Any) -> float:
    """Return the mean of R2 over the elements of a sample, each of them weighted by its own weights.

    It is scikit-learn's ``r2_score`` of samples made flat: one where an element is constant and right, zero
    where it is constant and wrong. Elements without a weight in any sample are left out.
    """
    y = with_masked_labels(y, sample_weight)
    values = _like(y, predicted).astype(np.float64).reshape(len(predicted), -1)
    errors = (values - predicted.reshape(values.shape)) ** 2
    weights = _weights(sample_weight, y)
    weights = np.ones(values.shape) if weights is None else weights
    total = weights.sum(axis=0)
    seen = total > 0
    mean = (weights * values).sum(axis=0)[seen] / total[seen]
    left = (weights * errors).sum(axis=0)[seen]
    around = (weights[:, seen] * (values[:, seen] - mean) ** 2).sum(axis=0)
    scores = 1 - np.divide(left, around, out=(left > 0).astype(np.float64), where=around > 0)
    return float(scores.mean())


def _like(y: Any, predicted: np.ndarray) -> np.ndarray:
    """Return labels in the shape of predictions."""
    labels = np.asarray(y)
    if labels.size != predicted.size or len(labels) != len(predicted):
        raise ValueError(
            f"y has the shape {labels.shape}, and predictions have the shape {predicted.shape}: y must have "
            "a label for each of them."
        )
    return labels.reshape(predicted.shape)


def _weights(sample_weight: Any, y: Any) -> np.ndarray | None:
    if sample_weight is None:
        return None
    return per_position(np.asarray(sample_weight, dtype=np.float64), np.shape(y))


def _dense(y: Any) -> np.ndarray:
    return y.toarray() if issparse(y) else np.asarray(y)
