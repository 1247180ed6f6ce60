"""Adam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .scheduled import ScheduledLearningRate

__all__ = ["LearningRateAdam"]


class LearningRateAdam(ScheduledLearningRate):
    """Adam: steps scaled by running means of the gradient and of its square.

    With ``m = beta_1 * m + (1 - beta_1) * g`` and ``v = beta_2 * v + (1 - beta_2) * g ** 2``, update
    number t is ``w -= rate * (m / (1 - beta_1 ** t)) / (sqrt(v / (1 - beta_2 ** t)) + epsilon)``.

    Parameters
    ----------
    eta0 : float, default=0.001
        Rate that the schedule starts with.
    beta_1 : float, default=0.9
        Decay of the mean of gradients, in [0, 1).
    beta_2 : float, default=0.999
        Decay of the mean of squares, in [0, 1).
    epsilon : float, default=1e-8
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
    Kingma, D. P. and Ba, J., "Adam: a method for stochastic optimization", ICLR 2015.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateAdam
    >>> LearningRateAdam().rate(5)
    0.001
    """

    elementwise = True
    nonnegative_states = ("square", "power_1", "power_2")

    def __init__(
        self,
        eta0: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        learning_rate: Any = "constant",
        alpha: float = 0.0001,
        power_t: float = 0.25,
        schedule: Any = None,
    ) -> None:
        super().__init__(
            eta0=eta0, alpha=alpha, power_t=power_t, learning_rate=learning_rate, schedule=schedule
        )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        for name in ("beta_1", "beta_2"):
            self.check_number(name, high=1.0, closed=True)
        self.check_number("epsilon")

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: zero means, and the powers of both decays."""
        one = np.ones((), dtype=weight.dtype)
        zeros = np.zeros_like(weight)
        return {"mean": zeros, "square": zeros.copy(), "power_1": one, "power_2": one.copy()}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        beta_1, beta_2 = float(self.beta_1), float(self.beta_2)
        power_1 = op.Mul(state["power_1"], beta_1)
        power_2 = op.Mul(state["power_2"], beta_2)
        mean = op.Add(op.Mul(state["mean"], beta_1), op.Mul(gradient, 1.0 - beta_1))
        squared = op.Mul(gradient, gradient)
        square = op.Add(op.Mul(state["square"], beta_2), op.Mul(squared, 1.0 - beta_2))
        scale = op.Sqrt(op.Div(square, op.Sub(1.0, power_2)))
        step = op.Mul(mean, op.Div(rate, op.Sub(1.0, power_1)))
        new = op.Sub(weight, op.Div(step, op.Add(scale, float(self.epsilon))))
        return new, {"mean": mean, "square": square, "power_1": power_1, "power_2": power_2}
