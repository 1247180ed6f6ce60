"""Methods: how the members of an interval estimator are trained, and the base that they form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from ..losses import QuantileLoss, QuantilesLoss
from ..problem.samples import Samples
from .bases import Base, Centre, Increments, Separate
from .members import Member, as_member, is_given, new_optimizer

__all__ = ["METHODS", "Plan"]

#: Largest number of features of the linear model of the residuals of a given model.
MOST_FEATURES = 1000
#: Interquartile range of the standard normal distribution.
NORMAL_RANGE = 1.349


@dataclass(frozen=True)
class Plan:
    """What is trained: an estimator, the levels, and the parameters of methods."""

    estimator: Any
    levels: np.ndarray
    seed: int
    normalize: bool = False
    n_members: int = 5

    @property
    def loss(self) -> QuantilesLoss:
        """Loss of all levels."""
        return QuantilesLoss(levels=tuple(self.levels.tolist()))

    def trained(self, samples: Samples, y: np.ndarray, seed: int = 0, **changed: Any) -> Member:
        """Return a new model trained on labels y."""
        optimizer = new_optimizer(self.estimator, self.seed + seed, **changed)
        return Member(optimizer.fit(samples.X, y, sample_weight=samples.sample_weight))


def spread_of(y: np.ndarray) -> tuple[float, float]:
    """Return median and scale of labels, by quartiles if these differ."""
    low, middle, high = np.quantile(y, [0.25, 0.5, 0.75])
    return float(middle), float((high - low) / NORMAL_RANGE or np.std(y) or 1.0)


def repeated(y: np.ndarray, centre: float, spread: float, count: int) -> np.ndarray:
    """Return standardised labels, once per level."""
    return np.tile(((y - centre) / spread).reshape(-1, 1), (1, count))


def quantile_members(plan: Plan, samples: Samples) -> tuple[tuple[Member, ...], Base]:
    """Train quantiles together, or one model per level if the estimator has a single output."""
    y, n = samples.y, len(plan.levels)
    if is_given(plan.estimator):
        return residual_quantiles(plan, samples)
    if not get_tags(plan.estimator).target_tags.multi_output:
        losses = [QuantileLoss(quantile=float(level)) for level in plan.levels]
        return tuple(plan.trained(samples, y, learning_loss=loss) for loss in losses), Separate()
    centre, spread = spread_of(y)
    member = plan.trained(samples, repeated(y, centre, spread, n), learning_loss=plan.loss)
    return (member,), Increments(centre, spread)


def residual_quantiles(plan: Plan, samples: Samples) -> tuple[tuple[Member, ...], Base]:
    """Train a linear model of the quantiles of the residuals of a given model."""
    own = as_member(plan.estimator, samples.X, samples.y)
    predicted = np.asarray(own.estimator.predict(samples.X), np.float64).reshape(len(samples.y), -1)
    residuals, trainable = samples.y - predicted[:, 0], own.estimator._model().problem.trainable
    count = trainable.n_features if trainable.takes_numbers else None
    reads = "both" if count is not None and count <= MOST_FEATURES else "prediction"
    centre, spread = spread_of(residuals)
    head = new_optimizer(make_pipeline(StandardScaler(), Ridge()), plan.seed, learning_loss=plan.loss)
    labels = repeated(residuals, centre, spread, len(plan.levels))
    head.fit(Member(own.estimator, reads).features(samples.X, predicted), labels, samples.sample_weight)
    return (own, Member(head, reads)), Increments(centre, spread, is_shift=True)


def residual_members(plan: Plan, samples: Samples) -> tuple[tuple[Member, ...], Base]:
    """Train the model with its own loss, or take a given one."""
    if is_given(plan.estimator):
        return (as_member(plan.estimator, samples.X, samples.y),), Centre()
    return (plan.trained(samples, samples.y),), Centre()


METHODS = {"cqr": quantile_members, "residual": residual_members}
