"""Scales of labels, and of scores that predict them."""

from __future__ import annotations

import numpy as np

from ..data.samples import Data
from ..exceptions import ObjectiveWarning, warn_user
from .problem import Problem

__all__ = ["label_moments", "score_moments", "warn_of_scales"]

#: Ratio of the scales of two outputs up to which a network learns both: R2 of the smaller one was 0.98 for
#: ratios up to 30, 0.74 for 100, and below 0 for 10,000.
LARGEST_RATIO = 50
#: The same for linear models, whose solver rounds the sum of the errors: predictions of the smaller output
#: differed by up to 0.01 of their standard deviation for this ratio, and by 0.2 for ten times it.
LARGEST_RATIO_OF_LINEAR = 1_000
SCALES = (
    "y[:, {}] has a standard deviation of {:.3g}, y[:, {}] of {:.3g}: training minimises the sum of their "
    "errors, and hardly learns the smaller one. Standardise them: "
    "TransformedTargetRegressor(model, transformer=StandardScaler())."
)


def warn_of_scales(problem: Problem, data: Data) -> None:
    """Warn of outputs whose errors hardly count in the sum that a training minimises."""
    trainable, y = problem.trainable, data.y
    layers = [name for name in trainable.trained if trainable.parameters[name].role == "weight"]
    if not layers or problem.link_of_labels != "identity" or y.ndim != 2:
        return
    most = LARGEST_RATIO if problem.flexible and len(layers) > 1 else LARGEST_RATIO_OF_LINEAR
    spread = y.std(axis=0, dtype=np.float64)
    differs = spread > 1e-6 * np.abs(y).max(axis=0)  # others are constant but for rounding
    low, high = np.argmin(np.where(differs, spread, np.inf)), np.argmax(spread)
    if differs[low] and spread[high] > most * spread[low]:
        warn_user(SCALES.format(low, spread[low], high, spread[high]), ObjectiveWarning)


def label_moments(problem: Problem, data: Data) -> tuple[np.ndarray, float]:
    """Return mean and standard deviation of scores that predict the labels; 0 and 1 if none do."""
    values = data.y.reshape(len(data.y), -1)
    if problem.link_of_labels is None:
        return np.zeros(values.shape[1]), 1.0
    values, weights = values.astype(np.float64), data.weight_per_sample
    mean = np.average(values, axis=0, weights=weights)
    return score_moments(problem, mean, np.average((values - mean) ** 2, axis=0, weights=weights))


def score_moments(problem: Problem, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, float]:
    """Return mean and standard deviation of scores, from those of the labels; for a constant its size."""
    if problem.link_of_labels == "identity":
        return mean, float(np.sqrt(variance.mean())) or float(np.abs(mean).max(initial=0.0)) or 1.0
    return np.log(np.where((mean > 0) & (problem.link_of_labels == "log"), mean, 1.0)), 1.0
