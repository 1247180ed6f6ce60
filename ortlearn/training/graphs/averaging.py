"""Averaged stochastic gradient descent: the mean of the weights after each update."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from ...learning_rates import BaseLearningRate
from .wrapped_rate import WrappedRate

__all__ = ["Averaged", "append_sums", "averages", "reset_pending_averages", "is_averaged"]

#: Additional states of a weight.
SUM = "averaged_sum"
COUNT = "averaged_count"


class Averaged(WrappedRate):
    """A learning rate that also averages the weights, from update number ``begin`` (counted from 1) on.

    Each weight has two additional states: the sum of its values, and their number, which is zero or less
    before ``begin``. Both are float64, since in float32 they would stop growing after some million updates.
    Source: Polyak, B. T. and Juditsky, A. B., "Acceleration of stochastic approximation by averaging", SIAM
    Journal on Control and Optimization 30 (1992), 838-855.
    """

    def __init__(self, learning_rate: BaseLearningRate, begin: int = 1) -> None:
        super().__init__(learning_rate)
        self.begin = begin

    @property
    def scales_gradient(self) -> bool:  # type: ignore[override]
        """Whether the update uses the rate only as a factor of the gradient."""
        return self.learning_rate.scales_gradient

    @property
    def full_batch(self) -> bool:  # type: ignore[override]
        """Whether this is a solver."""
        return self.learning_rate.full_batch

    @property
    def proximal_scale(self) -> float | None:
        """Distance that a constant gradient moves a weight per update, in learning rates."""
        return self.learning_rate.proximal_scale

    def check(self) -> None:
        """Check the parameters before training."""
        self.learning_rate.check()
        self.check_count("begin")

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: that of the update, sum and count."""
        own = {SUM: np.zeros(weight.shape), COUNT: np.array(1.0 - self.begin)}
        return {**self.learning_rate.init(weight), **own}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight; its sum is written by :func:`append_sums`."""
        own = {name: value for name, value in state.items() if name not in (SUM, COUNT)}
        return self.learning_rate.update(op, weight, gradient, own, rate)

    def graph_key(self) -> Hashable:
        """Return a key of the nodes; ``begin`` is part of the initial count."""
        return type(self), self.learning_rate.graph_key(), self.begin == 1


def append_sums(
    learning_rate: BaseLearningRate,
    op: GraphBuilder,
    weights: Mapping[str, str],
    states: Mapping[str, Mapping[str, str]],
) -> dict[str, dict[str, str]]:
    """Write the sums of the updated weights."""
    if not isinstance(learning_rate, Averaged):
        return {name: {} for name in weights}
    counts = {name: op.Add(states[name][COUNT], np.array(1.0)) for name in weights}
    counted = None
    if learning_rate.begin > 1:  # 1 once averaging has begun, 0 before; equal for all weights
        counted = op.Clip(next(iter(counts.values())), np.array(0.0), np.array(1.0))
    results = {}
    for name, value in weights.items():
        wide = value if op.float_dtype == np.float64 else op.Cast(value, to=TensorProto.DOUBLE)
        term = wide if counted is None else op.Mul(wide, counted)
        results[name] = {SUM: op.Add(states[name][SUM], term), COUNT: counts[name]}
    return results


def is_averaged(states: Mapping[tuple[str, str], np.ndarray]) -> bool:
    """Return whether states are those of a training with :class:`Averaged`."""
    return any(name == COUNT for _, name in states)


def reset_pending_averages(
    states: Mapping[tuple[str, str], np.ndarray], learning_rate: BaseLearningRate
) -> dict[tuple[str, str], np.ndarray]:
    """Return the states of a training that continues with other data; restart averages not yet begun."""
    if not isinstance(learning_rate, Averaged):
        return dict(states)
    start = np.array(1.0 - learning_rate.begin)
    return {key: start if key[1] == COUNT and array < 1 else array for key, array in states.items()}


def averages(
    states: Mapping[tuple[str, str], np.ndarray], weights: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the mean of each weight since averaging began."""
    means = {}
    for name, weight in weights.items():
        count = float(states[name, COUNT])
        mean = weight if count < 1 else states[name, SUM] / count
        means[name] = np.array(mean, dtype=weight.dtype)
    return means
