"""The score of a fitted model: that of the wrapped estimator, if it has one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from ..preprocessing.columns import as_array_like, count_samples
from ..preprocessing.initial_fit import final_step, untouched
from ..problem.problem import Problem
from ..problem.samples import check_weights, flat_weights
from ..targets.label_arrays import per_position, with_masked_labels

__all__ = ["accuracy_of_positions", "dense_labels", "r2_of_positions", "score_of", "takes_weights"]


class Scored(Protocol):
    """Fitted model with the methods that its score needs."""

    problem: Problem

    @property
    def written(self) -> Any:
        """scikit-learn model with the trained weights."""

    def read(self, X: Any) -> Any:
        """Validate X, and convert it to the input of the graph."""

    def losses(self, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
        """Return the training loss of each sample."""

    def transform(self, X: Any) -> Any:
        """Transform X."""


def score_of(model: Scored, X: Any, y: Any, sample_weight: Any, predict: Callable[[Any], Any]) -> float:
    """Return the score of a model with the predictions of ``predict``."""
    if model.problem.has_own_score:
        return _own_score(model, X, y, sample_weight)
    scores = model.problem.trainable.scores
    y, sample_weight = as_array_like(y, "y"), flat_weights(sample_weight)
    if scores is not None and scores.task == "unsupervised":
        losses = model.losses(X, None, None).astype(np.float64)
        if scores.averaged:
            return -float(np.average(losses, weights=sample_weight))
        return -float(losses.sum() if sample_weight is None else np.dot(sample_weight, losses))
    from sklearn.metrics import accuracy_score, r2_score  # slow import

    if model.problem.is_multilabel:
        correct = (dense_labels(predict(X)) == dense_labels(y)).all(axis=1)
        return float(np.average(correct, weights=sample_weight))
    if scores is not None and scores.transformed is not None:
        return r2_score(y, model.transform(X), sample_weight=sample_weight)
    if scores is not None and scores.positions is not None:
        score = r2_of_positions if scores.task == "regression" else accuracy_of_positions
        return score(y, predict(X), sample_weight)
    if np.ndim(y) > 2:
        return r2_of_positions(y, predict(X), sample_weight)
    metric = accuracy_score if model.problem.targets.classes is not None else r2_score
    return metric(y, predict(X), sample_weight=sample_weight)


def _own_score(model: Scored, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the score of the scikit-learn model with the trained weights."""
    model.read(X)  # checks X
    written = model.written
    X, y = untouched(written, X, y)
    if sample_weight is None:
        return float(_with_dense(X, lambda X: written.score(X, y)))
    weights = check_weights(flat_weights(sample_weight), count_samples(X))
    if _has_weights(written):
        return float(_with_dense(X, lambda X: written.score(X, y, sample_weight=weights)))
    if _is_mean_likelihood(written):
        return float(np.average(_with_dense(X, written.score_samples), weights=weights))
    name = type(final_step(written)).__name__
    raise ValueError(f"The score of {name} takes no sample_weight: leave sample_weight out.")


def takes_weights(model: Any) -> bool:
    """Return whether the score of a scikit-learn model can be weighted."""
    return _has_weights(model) or _is_mean_likelihood(model)


def _with_dense(X: Any, method: Callable[[Any], Any]) -> Any:
    """Return the result of a method of X, dense if the method does not take sparse samples."""
    try:
        return method(X)
    except TypeError:
        if not issparse(X):
            raise
        return method(X.toarray())


def _has_weights(model: Any) -> bool:
    return "sample_weight" in inspect.signature(final_step(model).score).parameters


def _is_mean_likelihood(model: Any) -> bool:
    """Return whether a score is the mean over samples, as for PCA; that of a search is its scorer."""
    return hasattr(model, "score_samples") and not hasattr(model, "scorer_")


def accuracy_of_positions(y: Any, predicted: np.ndarray, sample_weight: Any) -> float:
    """Return the weighted share of correctly classified positions."""
    y = with_masked_labels(y, sample_weight)
    correct = (predicted == _labels_like(y, predicted)).reshape(len(predicted), -1)
    return float(np.average(correct, weights=_weights(sample_weight, y)))


def r2_of_positions(y: Any, predicted: np.ndarray, sample_weight: Any) -> float:
    """Return the mean of R2 over the elements of a sample.

    It equals scikit-learn's ``r2_score`` of flattened samples, with separate weights for each element. The R2
    of a constant element is 1 if predictions are exact and 0 otherwise. Elements whose weight is zero in all
    samples are ignored.
    """
    y = with_masked_labels(y, sample_weight)
    values = _labels_like(y, predicted).astype(np.float64).reshape(len(predicted), -1)
    errors = (values - predicted.reshape(values.shape)) ** 2
    weights = _weights(sample_weight, y)
    weights = np.ones(values.shape) if weights is None else weights
    total = weights.sum(axis=0)
    used = total > 0
    mean = (weights * values).sum(axis=0)[used] / total[used]
    residual = (weights * errors).sum(axis=0)[used]
    variation = (weights[:, used] * (values[:, used] - mean) ** 2).sum(axis=0)
    scores = 1 - np.divide(residual, variation, out=(residual > 0).astype(np.float64), where=variation > 0)
    return float(scores.mean())


def _labels_like(y: Any, predicted: np.ndarray) -> np.ndarray:
    """Return labels in the shape of predictions."""
    labels = np.asarray(y)
    if labels.size != predicted.size or len(labels) != len(predicted):
        raise ValueError(
            f"y has the shape {labels.shape}, and predictions have the shape {predicted.shape}: y must have "
            "one label per prediction."
        )
    return labels.reshape(predicted.shape)


def _weights(sample_weight: Any, y: Any) -> np.ndarray | None:
    if sample_weight is None:
        return None
    return per_position(np.asarray(sample_weight, dtype=np.float64), np.shape(y))


def dense_labels(y: Any) -> np.ndarray:
    """Return labels or predictions as an array."""
    return y.toarray() if issparse(y) else np.asarray(y)
