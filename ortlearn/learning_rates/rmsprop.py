"""RMSprop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .scheduled import ScheduledLearningRate

__all__ = ["LearningRateRMSprop"]


class LearningRateRMSprop(ScheduledLearningRate):
    """RMSprop: steps divided by the root of a running mean of squared gradients.

    With ``s = rho * s + (1 - rho) * g ** 2``, the step is ``d = g / (sqrt(s) + epsilon)`` and the
    update ``w -= rate * d``. If centered, s is lowered by the square of
    ``m = rho * m + (1 - rho) * g``: an estimate of the variance. With momentum,
    ``b = momentum * b + d`` and ``w -= rate * b``.

    Parameters
    ----------
    eta0 : float, default=0.01
        Rate that the schedule starts with.
    rho : float, default=0.99
        Decay of the running means, in [0, 1); ``alpha`` in torch.optim.
    epsilon : float, default=1e-8
        Added to the denominator.
    momentum : float, default=0.0
        Share of the previous step that is kept, in [0, 1).
    centered : bool, default=False
        Whether to divide by the standard deviation.
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
    Tieleman, T. and Hinton, G., "Lecture 6.5: rmsprop", Neural networks for machine learning, Coursera,
    2012; centered: Graves, A., "Generating sequences with recurrent neural networks", 2013,
    equations 38 to 45; both as in torch.optim.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateRMSprop
    >>> sorted(LearningRateRMSprop(momentum=0.9).init(np.zeros(2)))
    ['square', 'step']
    """

    elementwise = True
    nonnegative_states = ("square",)

    def __init__(
        self,
        eta0: float = 0.01,
        rho: float = 0.99,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        centered: bool = False,
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
        self.momentum = momentum
        self.centered = centered

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        for name in ("rho", "momentum"):
            self.check_number(name, high=1.0, closed=True)
        self.check_number("epsilon")
        self.check_flag("centered")

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: zeros."""
        names = ["square"] + ["mean"] * bool(self.centered) + ["step"] * bool(self.momentum)
        return {name: np.zeros_like(weight) for name in names}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        rho = float(self.rho)
        square = op.Add(op.Mul(state["square"], rho), op.Mul(op.Mul(gradient, gradient), 1.0 - rho))
        new, variance = {"square": square}, square
        if self.centered:
            new["mean"] = mean = op.Add(op.Mul(state["mean"], rho), op.Mul(gradient, 1.0 - rho))
            # Rounding can make the variance negative.
            variance = op.Max(op.Sub(square, op.Mul(mean, mean)), 0.0)
        step = op.Div(gradient, op.Add(op.Sqrt(variance), float(self.epsilon)))
        if self.momentum:
            new["step"] = step = op.Add(op.Mul(state["step"], float(self.momentum)), step)
        return op.Sub(weight, op.Mul(step, rate)), new
