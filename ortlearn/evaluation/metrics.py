"""Metrics of predictions as functions of sample weights, which a bootstrap changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .predictions import Model, Predictions

__all__ = ["Metrics", "metrics_of", "model_metrics", "sample_losses", "scores_of"]

#: Functions of weights by the name of the metric; they return nan if it is not defined.
Metrics = dict[str, Callable[[np.ndarray], float]]


def model_metrics(model: Model, labels: np.ndarray, predictions: Predictions) -> Metrics:
    """Return the metrics of a model's task."""
    if model.task is None:
        name = type(model.source).__name__
        raise ValueError(f"{model.path}: {name} is neither a classifier nor a regressor, and has no scores.")
    return metrics_of(labels, predictions, model.classes if model.task == "classification" else labels[:0])


def metrics_of(labels: np.ndarray, predictions: Predictions, classes: np.ndarray | None) -> Metrics:
    """Return the metrics of predictions; ``classes`` is None if unknown, and empty for regression."""
    if classes is not None and len(classes) == 0:
        return _of_numbers(labels, predictions.values)
    metrics: Metrics = {"accuracy": _mean(predictions.values == labels)}
    scores = predictions.scores if predictions.probabilities is None else predictions.probabilities
    codes = None if scores is None else _codes(labels, classes, scores)
    if codes is None or scores is None:
        return metrics
    if predictions.probabilities is not None:
        metrics["log_loss"] = _mean(_log_losses(predictions.probabilities, codes))
        metrics["brier"] = _mean(_brier_losses(predictions.probabilities, codes))
    return {**metrics, "roc_auc": _roc_auc(scores, codes)}


def sample_losses(model: Model, labels: np.ndarray, predictions: Predictions) -> np.ndarray:
    """Return the loss of each sample: log loss, wrong labels without probabilities, or squared error."""
    if model.task == "regression":
        return np.asarray((predictions.values.astype(np.float64) - labels) ** 2)
    if predictions.probabilities is not None:
        codes = _codes(labels, model.classes, predictions.probabilities)
        if codes is not None:
            return _log_losses(predictions.probabilities, codes)
    return (predictions.values != labels).astype(np.float64)


def scores_of(metrics: Metrics, weights: np.ndarray) -> dict[str, float]:
    """Return the values of metrics under weights of the samples."""
    return {name: float(metric(weights)) for name, metric in metrics.items()}


def _of_numbers(labels: np.ndarray, values: np.ndarray) -> Metrics:
    """Return metrics of numbers, of one or several outputs, whose R2 is the mean."""
    y = labels.reshape(len(labels), -1).astype(np.float64)
    errors = values.reshape(y.shape).astype(np.float64) - y

    def r2(weights: np.ndarray) -> float:
        total = weights @ (y - weights @ y / weights.sum()) ** 2
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.where(total > 0, 1 - weights @ errors**2 / total, np.nan).mean())

    squares, sizes = _mean((errors**2).mean(axis=1)), np.abs(errors).mean(axis=1)
    return {"r2": r2, "mae": _mean(sizes), "rmse": lambda weights: float(np.sqrt(squares(weights)))}


def _mean(values: np.ndarray) -> Callable[[np.ndarray], float]:
    values = values.astype(np.float64)
    return lambda weights: float(weights @ values / weights.sum())


def _codes(labels: np.ndarray, classes: Any, scores: np.ndarray) -> np.ndarray | None:
    """Return the class number of each label; None if classes are unknown and labels are not numbers."""
    n_classes = max(2, scores.shape[1] if scores.ndim == 2 else 1)
    if classes is None:
        whole = labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < n_classes
        return labels.astype(np.int64) if whole else None
    if len(classes) != n_classes:
        return None
    numbers = {value: code for code, value in enumerate(np.asarray(classes).tolist())}
    return np.array([numbers[value] for value in labels.tolist()], dtype=np.int64)


def _log_losses(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return minus the logarithm of the probability of each label, at least the resolution of float32."""
    smallest = np.finfo(np.float32).eps
    own = probabilities[np.arange(len(codes)), codes].astype(np.float64)
    return -np.log(np.clip(own, smallest, 1 - smallest))


def _brier_losses(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the squared error of the probabilities: of the second of two classes, summed over several."""
    errors = probabilities.astype(np.float64)
    errors[np.arange(len(codes)), codes] -= 1
    return (errors**2).sum(axis=1) / (2 if errors.shape[1] == 2 else 1)


def _roc_auc(scores: np.ndarray, codes: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return the area under the ROC curve: of two classes, or the mean of one-vs-rest."""
    if scores.ndim == 1 or scores.shape[1] <= 2:
        return _binary_auc(scores if scores.ndim == 1 else scores[:, -1], codes == 1)
    parts = [_binary_auc(scores[:, code], codes == code) for code in range(scores.shape[1])]
    return lambda weights: float(np.mean([part(weights) for part in parts]))


def _binary_auc(scores: np.ndarray, positive: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return the share of pairs that the scores order correctly; ties count as half."""
    order = np.argsort(scores, kind="stable")
    ranked, positive = scores[order], positive[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])

    def area(weights: np.ndarray) -> float:
        weights = weights[order]
        above = np.add.reduceat(np.where(positive, weights, 0.0), starts)
        below = np.add.reduceat(np.where(positive, 0.0, weights), starts)
        pairs = above.sum() * below.sum()
        before = np.cumsum(below) - below
        return float(above @ (before + below / 2) / pairs) if pairs > 0 else float("nan")

    return area
