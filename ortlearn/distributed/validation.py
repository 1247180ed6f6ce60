"""Validation and scores on a cluster, from sums over the shards of held-out data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..data.sample_blocks import SampleBlock
from ..data.tables import Table
from ..fitting.fitted_model import FittedModel
from ..fitting.given import Call
from ..fitting.scoring import dense_labels
from ..fitting.sources.counts import SourceTotals
from ..fitting.start import Start
from ..fitting.validation import BaseValidation, Validation
from ..problem.configuration import Runtime
from ..problem.input_validation import InputFeatures
from ..problem.problem import Problem
from ..problem.samples import Samples, check_weights, flat_weights
from ..training.graphs.first_layers import Moments
from ..training.state import TrainingState
from . import readings
from .cluster import Cluster
from .partitions import are_on_workers, open_partitions
from .shards import ShardSamples, count_partitions

__all__ = ["score_on_cluster", "validation_on"]


class ScoreSums(NamedTuple):
    """Means over some samples from which a score is computed; the moments of labels are for R2."""

    value: np.ndarray
    labels: Moments | None
    weight: float

    def merge(self, other: ScoreSums) -> ScoreSums:
        """Return the means over the samples of both."""
        if not (self.weight > 0 and other.weight > 0):
            return self if self.weight > 0 else other
        weight = self.weight + other.weight
        value = self.value + (other.value - self.value) * (other.weight / weight)
        if self.labels is not None and other.labels is not None:
            self.labels.merge(other.labels)
        return ScoreSums(value, self.labels, weight)


def score_kind(problem: Problem) -> str | None:
    """Return ``"accuracy"``, ``"r2"`` or ``"loss"``; None if it is no function of sums over samples."""
    scores = problem.trainable.scores
    if problem.has_own_score:
        return None
    if scores is not None and scores.task == "unsupervised":
        return "loss"
    if scores is None or scores.positions is not None or scores.transformed is not None:
        return None
    if problem.is_multilabel or problem.targets.classes is not None:
        return None if isinstance(problem.targets.classes, list) and not problem.is_multilabel else "accuracy"
    return "r2" if problem.targets.ndim <= 2 else None


def score_block(
    evaluator: readings.Evaluator,
    features: InputFeatures,
    weights: Mapping[str, np.ndarray],
    block: SampleBlock,
) -> ScoreSums:
    """Return the means over a partition from which the score of a model with some weights is computed."""
    problem, kind = evaluator.problem, score_kind(evaluator.problem)
    inference = evaluator.inference.with_weights(weights)
    model = FittedModel(problem, features, TrainingState(), inference=inference)
    dtype = problem.trainable.input_dtype
    X = block.X.frame(dtype) if isinstance(block.X, Table) else block.X
    counts = flat_weights(block.sample_weight)
    counts = None if counts is None else check_weights(counts, len(block))
    weight = float(len(block)) if counts is None else float(counts.sum())
    if kind == "loss":
        losses = model.losses(X, None, None).astype(np.float64)
        return ScoreSums(np.array([np.average(losses, weights=counts)]), None, weight)
    predicted = model.predict(X)
    if kind == "accuracy":
        right = np.asarray(dense_labels(predicted) == dense_labels(block.y))
        right = right.reshape(len(block), -1).all(axis=1)
        return ScoreSums(np.array([np.average(right, weights=counts)]), None, weight)
    y = np.asarray(block.y, dtype=np.float64).reshape(len(block), -1)
    errors = (y - predicted.reshape(y.shape)) ** 2
    labels = Moments()
    labels.add(y, counts)
    return ScoreSums(np.average(errors, axis=0, weights=counts), labels, weight)


def _score(problem: Problem, sums: ScoreSums) -> float:
    """Return the score from means over all samples."""
    scores = problem.trainable.scores
    if sums.labels is None:
        value = float(sums.value[0])
        if score_kind(problem) == "accuracy":
            return value
        return -value if scores is not None and scores.averaged else -value * sums.weight
    left, around = sums.value, sums.labels.mean_and_variance[1]
    r2 = 1 - np.divide(left, around, out=(left > 0).astype(np.float64), where=around > 0)
    return float(r2.mean())


class ShardValidation(BaseValidation):
    """Loss and score on held-out shards."""

    def __init__(
        self,
        cluster: Cluster,
        collections: tuple[Any, ...],
        problem: Problem,
        features: InputFeatures,
        runtime: Runtime,
    ):
        found = open_partitions(cluster, *collections)
        partitions, wholes = count_partitions(cluster, found, False, problem.source is None)
        sizes = [whole.n_rows for whole in wholes]
        self.n_samples = sum(sizes)
        arguments = (cluster, partitions, sizes, SourceTotals.of_parts(wholes), problem, features, runtime)
        self._samples, self._features, self._blocks = ShardSamples(*arguments), features, partitions.blocks
        self._evaluator = cluster.send(readings.Evaluator(problem, runtime))

    def texts(self) -> dict[str, str]:
        """Return the fingerprint of the samples."""
        return {f"{name}_val": text for name, text in self._samples.array_texts().items()}

    def loss(self, weights: Mapping[str, np.ndarray]) -> float:
        """Return the mean loss of the model with some weights."""
        return self._samples.mean_loss_of(self._evaluator, weights)

    def score(self, weights: Mapping[str, np.ndarray]) -> float | None:
        """Return the score of the model with some weights; None if it is no function of sums over samples."""
        samples = self._samples
        if score_kind(samples.problem) is None:
            return None
        arguments = (self._evaluator, self._features, samples.cluster.send(dict(weights)))
        futures = [samples.cluster.submit(score_block, *arguments, block) for block in self._blocks]
        return _score(samples.problem, reduce(ScoreSums.merge, samples.gather(futures)))


def validation_on(request: Any, call: Call, start: Start) -> Any:
    """Return the validation: on the driver if the data are in memory, None without held-out data."""
    (X, y, sample_weight), configuration = request.held_out, call.beginning.configuration
    if X is None:
        return None
    if not are_on_workers(X):
        return Validation.of(configuration, start, Samples(X, y, sample_weight), call.view.with_model)
    if y is None and sample_weight is None and isinstance(request.y, str | list):  # the same columns
        y, sample_weight = request.y, request.sample_weight
    scoring = configuration.stopping.scoring
    if scoring not in ("loss", None):
        raise ValueError(
            f"scoring={scoring!r} needs all predictions at once, but X_val is on the workers: pass X_val and "
            "y_val as arrays in memory, or set scoring='loss'."
        )
    if start.problem.needs_labels and y is None and not isinstance(X, list):
        raise ValueError("X_val is given without y_val: pass both or none.")
    features = None if request.features is None else list(request.features)
    collections = (X, y, sample_weight, features)
    return ShardValidation(request.cluster, collections, start.problem, start.features, configuration.runtime)


def score_on_cluster(
    cluster: Cluster, model: FittedModel, runtime: Any, X: Any, y: Any, sample_weight: Any
) -> float:
    """Return the score of a trained model for samples on the workers."""
    if score_kind(model.problem) is None:
        raise ValueError(
            "The score of this model needs all predictions at once. Call a metric with predict(X).compute(), "
            "or pass X and y as arrays in memory."
        )
    block = ShardValidation(cluster, (X, y, sample_weight), model.problem, model.features, runtime)
    return float(block.score(model.stable_weights()))  # type: ignore[arg-type]
