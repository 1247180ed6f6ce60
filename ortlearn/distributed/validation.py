"""Validation and scores on a cluster: sums over the shards of other rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..estimators.fitted_model import FittedModel
from ..estimators.fitting import Trainer
from ..estimators.input_validation import InputFeatures
from ..estimators.problem import Problem
from ..estimators.samples import Samples, check_weights, flat_weights
from ..estimators.source_counts import Whole
from ..estimators.starting import Start
from ..estimators.training_state import TrainingState
from ..streams import Rows, Table
from ..training import Measured
from . import readings
from .cluster import Cluster
from .partitions import are_on_workers, open_partitions
from .shards import ShardSamples, counted

__all__ = ["score_on_cluster", "validation_on"]


class ScoreSums(NamedTuple):
    """What a score needs of some rows.

    Attributes
    ----------
    value : ndarray of shape (n_outputs,)
        Mean squared error of each output, share of right rows, or mean loss.
    labels : LabelMoments or None
        Moments of the labels, for R2.
    weight : float
        Sum of the weights of the rows.
    """

    value: np.ndarray
    labels: readings.LabelMoments | None
    weight: float

    def merge(self, other: ScoreSums) -> ScoreSums:
        """Return the sums of the rows of both."""
        if not (self.weight > 0 and other.weight > 0):
            return self if self.weight > 0 else other
        weight = self.weight + other.weight
        value = self.value + (other.value - self.value) * (other.weight / weight)
        both = self.labels is not None and other.labels is not None
        labels = self.labels.merge(other.labels) if both else None  # type: ignore[union-attr, arg-type]
        return ScoreSums(value, labels, weight)


def score_kind(problem: Problem) -> str | None:
    """Return how the rows of a score add up: ``"accuracy"``, ``"r2"``, ``"loss"``, or None if they do not."""
    head = problem.trainable.head
    if head is not None and head.task == "unsupervised":
        return "loss"
    if head is None or head.positions is not None or head.transformed is not None:
        return None
    if problem.is_multilabel or problem.targets.classes is not None:
        return None if isinstance(problem.targets.classes, list) and not problem.is_multilabel else "accuracy"
    return "r2" if problem.targets.ndim <= 2 else None


def score_rows(
    viewer: readings.Viewer, features: InputFeatures, weights: Mapping[str, np.ndarray], rows: Rows
) -> ScoreSums:
    """Return the sums that the score of a model with some weights needs of a partition."""
    problem, kind = viewer.problem, score_kind(viewer.problem)
    inference = viewer.inference.with_weights(weights)
    model = FittedModel(problem, features, inference.model, TrainingState(), inference=inference)
    dtype = problem.trainable.input_dtype
    X = rows.X.frame(dtype) if isinstance(rows.X, Table) else rows.X
    counts = flat_weights(rows.sample_weight)
    counts = None if counts is None else check_weights(counts, len(rows))
    weight = float(len(rows)) if counts is None else float(counts.sum())
    if kind == "loss":
        losses = model.losses(X, None, None).astype(np.float64)
        return ScoreSums(np.array([np.average(losses, weights=counts)]), None, weight)
    predicted = model.predict(X)
    if kind == "accuracy":
        right = np.asarray(_dense(predicted) == _dense(rows.y)).reshape(len(rows), -1).all(axis=1)
        return ScoreSums(np.array([np.average(right, weights=counts)]), None, weight)
    y = np.asarray(rows.y, dtype=np.float64).reshape(len(rows), -1)
    errors = (y - predicted.reshape(y.shape)) ** 2
    mean = np.average(y, axis=0, weights=counts)
    variance = np.average((y - mean) ** 2, axis=0, weights=counts)
    labels = readings.LabelMoments(mean, variance, weight)
    return ScoreSums(np.average(errors, axis=0, weights=counts), labels, weight)


def _dense(y: Any) -> Any:
    return y.toarray() if hasattr(y, "toarray") else np.asarray(y)


def _score(problem: Problem, sums: ScoreSums) -> float:
    """Return the score of all rows."""
    head = problem.trainable.head
    if sums.labels is None:
        value = float(sums.value[0])
        if score_kind(problem) == "accuracy":
            return value
        return -value if head is not None and head.averaged else -value * sums.weight
    left, around = sums.value, sums.labels.variance
    scores = 1 - np.divide(left, around, out=(left > 0).astype(np.float64), where=around > 0)
    return float(scores.mean())


class _OtherRows(ShardSamples):
    """Rows that a model is not trained on."""

    def of_model(self, features: InputFeatures, rows: list[Any]) -> _OtherRows:
        """Take note of what scores need."""
        self._features, self._rows = features, rows
        self._viewer = self.cluster.send(readings.Viewer(self.problem, self.runtime))
        return self

    def score(self, weights: Mapping[str, np.ndarray]) -> float | None:
        """Return the score of a model with some weights; None where scores of partitions do not add up."""
        if score_kind(self.problem) is None:
            return None
        begun = self.cluster.send(dict(weights))
        arguments = (self._viewer, self._features, begun)
        futures = [self.cluster.submit(score_rows, *arguments, rows) for rows in self._rows]
        return _score(self.problem, reduce(ScoreSums.merge, self.gather(futures)))

    def loss(self, weights: Mapping[str, np.ndarray]) -> float:
        """Return the mean loss of a model with some weights."""
        return self.mean_loss_of(self._viewer, weights)

    def measure_model(self, weights: Mapping[str, np.ndarray]) -> Measured:
        """Return both."""
        return Measured(self.loss(weights), self.score(weights))


class ShardValidation:
    """What is measured on other shards while a model is trained.

    Parameters
    ----------
    rows : _OtherRows
        These shards.
    """

    def __init__(self, rows: _OtherRows):
        self._rows = rows

    def loss(self, weights: Mapping[str, np.ndarray]) -> float:
        """Return the mean loss of the model with some weights."""
        return self._rows.loss(weights)

    def measure(self, weights: Mapping[str, np.ndarray]) -> Measured:
        """Return loss and score of the model with some weights."""
        return self._rows.measure_model(weights)


def _other_rows(
    cluster: Cluster, collections: tuple[Any, ...], problem: Problem, features: InputFeatures, runtime: Any
) -> _OtherRows:
    partitions, wholes = counted(
        cluster, open_partitions(cluster, *collections), False, problem.source is None
    )
    sizes = [whole.n_rows for whole in wholes]
    arguments = (cluster, partitions, sizes, Whole.of_parts(wholes), problem, features, runtime)
    return _OtherRows(*arguments).of_model(features, partitions.rows)


def validation_on(trainer: Trainer, start: Start, request: Any) -> Any:
    """Return what is measured on other rows: on the driver where they are in memory; None without any."""
    X, y, sample_weight = request.held_out
    if X is None:
        return None
    if not are_on_workers(X):
        return trainer.validation(start, Samples(X, y, sample_weight))
    if y is None and sample_weight is None and isinstance(request.y, str | list):  # the same columns
        y, sample_weight = request.y, request.sample_weight
    configuration, scoring = trainer.configuration, trainer.configuration.stopping.scoring
    if scoring not in ("loss", None):
        raise ValueError(
            f"scoring={scoring!r} needs all predictions at once, and X_val is on the workers: pass X_val and "
            "y_val as arrays in memory, or scoring='loss'."
        )
    if start.problem.needs_labels and y is None and not isinstance(X, list):
        raise ValueError("X_val and y_val go together: pass both or none.")
    features = None if request.features is None else list(request.features)
    collections = (X, y, sample_weight, features)
    arguments = (start.problem, start.features, configuration.runtime)
    return ShardValidation(_other_rows(request.cluster, collections, *arguments))


def score_on_cluster(
    cluster: Cluster, model: FittedModel, runtime: Any, X: Any, y: Any, sample_weight: Any
) -> float:
    """Return the score of a trained model for rows on the workers."""
    if score_kind(model.problem) is None:
        raise ValueError(
            "This score needs all predictions at once: compute predict(X), and call a metric, or pass arrays."
        )
    rows = _other_rows(cluster, (X, y, sample_weight), model.problem, model.features, runtime)
    return float(rows.score(model.stable_weights()))  # type: ignore[arg-type]
