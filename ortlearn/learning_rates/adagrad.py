"""Adagrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .scheduled import ScheduledLearningRate

__all__ = ["LearningRateAdagrad"]


class LearningRateAdagrad(ScheduledLearningRate):
    """Adagrad: steps divided by the root of the sum of all squared gradients.

    With ``t = t + g ** 2``, the update is ``w -= rate * g / (sqrt(t) + epsilon)``.

    Parameters
    ----------
    eta0 : float, default=0.01
        Rate that the schedule starts with.
    initial_total : float, default=0.0
        Initial value of the sums.
    epsilon : float, default=1e-10
        Added to the denominator.
    learning_rate : str or BaseSchedule, default="constant"
        Alias of ``schedule``, used if that is None.
    alpha : float, default=0.0001
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float, default=0.25
        Exponent of the schedule ``"invscaling"``.
    schedule : str or BaseSchedule, default=None
        Schedule, see :class:`~ortlearn.learning_rates.LearningRateSGD`.

    References
    ----------
    Duchi, J., Hazan, E. and Singer, Y., "Adaptive subgradient methods for online learning and stochastic
    optimization", Journal of Machine Learning Research 12 (2011), 2121-2159, with a diagonal matrix.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateAdagrad
    >>> LearningRateAdagrad(initial_total=0.1).init(np.zeros(2))
    {'total': array([0.1, 0.1])}
    """

    elementwise = True
    nonnegative_states = ("total",)

    def __init__(
        self,
        eta0: float = 0.01,
        initial_total: float = 0.0,
        epsilon: float = 1e-10,
        learning_rate: Any = "constant",
        alpha: float = 0.0001,
        power_t: float = 0.25,
        schedule: Any = None,
    ) -> None:
        super().__init__(
            eta0=eta0, alpha=alpha, power_t=power_t, learning_rate=learning_rate, schedule=schedule
        )
        self.initial_total = initial_total
        self.epsilon = epsilon

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("initial_total", closed=True)
        self.check_number("epsilon")

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: the initial sums."""
        return {"total": np.full_like(weight, self.initial_total)}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        total = op.Add(state["total"], op.Mul(gradient, gradient))
        step = op.Div(gradient, op.Add(op.Sqrt(total), float(self.epsilon)))
        return op.Sub(weight, op.Mul(step, rate)), {"total": total}
