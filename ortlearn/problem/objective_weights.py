"""Samples and their weights in the objective of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.samples import Data
from ..exceptions import ConversionError
from ..targets.class_weights import times_class_weights, weights_with_classes
from ..targets.label_arrays import not_one_per_sample, per_position
from ..targets.weight_sums import scale_of
from .input_validation import InputFeatures, read_samples
from .problem import Problem
from .samples import Samples

__all__ = ["data_of", "objective_weights", "read_data"]


def data_of(problem: Problem, matrix: Any, samples: Samples) -> Data:
    """Return samples, labels and weights as inputs of the graph."""
    n_samples = matrix.shape[0]
    labels = problem.encoder.encode(samples.y, n_samples)
    weights = samples.with_checked_weights().sample_weight
    return Data(matrix, labels, objective_weights(problem, samples.y, weights, n_samples))


def read_data(problem: Problem, samples: Samples, features: InputFeatures) -> Data:
    """Validate samples as those with these features, and return them as inputs of the graph."""
    return data_of(problem, read_samples(problem, samples.X, features), samples)


def objective_weights(
    problem: Problem,
    y: Any,
    sample_weight: np.ndarray | None,
    n_samples: int,
    scale: tuple[float, float] | None = None,
) -> np.ndarray | None:
    """Return sample weights for the objective of a problem; None without weights.

    Their mean is 1, except for a graph with its own loss, which gets the weights unchanged, ones by default.
    ``scale`` contains the divisors of the weights if the samples are a part of all samples: a power of two,
    and the mean of all weights after division by it.
    """
    tables, weights = problem.targets.class_weights, sample_weight
    if tables is not None and y is not None:
        weights = (weights_with_classes if scale is None else times_class_weights)(tables, y, sample_weight)
    if problem.trainable.scores is None:
        own = problem.trainable.own_loss
        if own is not None and own.row_weight is not None:
            weights = np.ones(n_samples) if weights is None else weights
        elif weights is not None:
            raise ConversionError(
                "The graph computes its own loss without sample weights: set weight_name to the input for "
                "them, or add one with add_loss_output(model, weight_name='sample_weight')."
            )
    elif weights is not None:
        weights = _for_positions(problem, weights, y)
        # Only ratios matter, and extreme weights are not representable in float32.
        unit, mean = _scale(problem, y, sample_weight, n_samples) if scale is None else scale
        weights = weights / unit / mean
    return None if weights is None else weights.astype(problem.dtype)


def _scale(problem: Problem, y: Any, sample_weight: np.ndarray | None, n_samples: int) -> tuple[float, float]:
    """Return a power of two as divisor of the weights, and the mean of the divided weights."""
    if sample_weight is None:
        return 1.0, problem.total_weight(y, None) / n_samples
    unit = scale_of(float(sample_weight.max()))
    return unit, problem.total_weight(y, sample_weight / unit) / n_samples


def _for_positions(problem: Problem, weights: np.ndarray, y: Any) -> np.ndarray:
    """Return weights of shape (n,), or (n, positions) for a loss of each position."""
    positions = None if problem.trainable.scores is None else problem.trainable.scores.positions
    if positions is not None and positions.per_position:
        return per_position(weights, np.shape(y))
    if weights.ndim > 1:
        raise ValueError(not_one_per_sample(weights.shape))
    return weights
