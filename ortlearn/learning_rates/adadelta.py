"""Adadelta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .scheduled import ScheduledLearningRate

__all__ = ["LearningRateAdadelta"]


class LearningRateAdadelta(ScheduledLearningRate):
    """Adadelta: steps scaled by the ratio of running means of squared steps and squared gradients.

    With ``s = rho * s + (1 - rho) * g ** 2``, the step is
    ``d = g * sqrt(u + epsilon) / sqrt(s + epsilon)``, where u is the running mean of earlier squared
    steps; then ``u = rho * u + (1 - rho) * d ** 2`` and ``w -= rate * d``.

    Parameters
    ----------
    eta0 : float, default=1.0
        Rate that the schedule starts with; 1 in the paper.
    rho : float, default=0.9
        Decay of the running means, in [0, 1).
    epsilon : float, default=1e-6
        Added to both means; its square root is the size of the first steps.
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
    Zeiler, M. D., "ADADELTA: an adaptive learning rate method", 2012, algorithm 1.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateAdadelta
    >>> LearningRateAdadelta().rate(0)
    1.0
    """

    elementwise = True
    nonnegative_states = ("square", "squared_step")

    def __init__(
        self,
        eta0: float = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        learning_rate: Any = "constant",
        alpha: float = 0.0001,
        power_t: float = 0.25,
        schedule: Any = None,
    ) -> None:
        super().__init__(
            eta0=eta0, alpha=alpha, power_t=power_t, learning_rate=learning_rate, schedule=schedule
        )
        self.rho = rho
        self.epsilon = epsilon

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("rho", high=1.0, closed=True)
        self.check_number("epsilon")

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: zero means of squares."""
        return {"square": np.zeros_like(weight), "squared_step": np.zeros_like(weight)}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        rho, epsilon = float(self.rho), float(self.epsilon)
        square = op.Add(op.Mul(state["square"], rho), op.Mul(op.Mul(gradient, gradient), 1.0 - rho))
        ratio = op.Div(op.Add(state["squared_step"], epsilon), op.Add(square, epsilon))
        step = op.Mul(gradient, op.Sqrt(ratio))
        squared_step = op.Add(op.Mul(state["squared_step"], rho), op.Mul(op.Mul(step, step), 1.0 - rho))
        return op.Sub(weight, op.Mul(step, rate)), {"square": square, "squared_step": squared_step}
