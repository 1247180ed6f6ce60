"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..graphs import GraphBuilder
from .scheduled import ScheduledLearningRate

__all__ = ["LearningRateSGDNesterov"]


class LearningRateSGDNesterov(ScheduledLearningRate):
    """Momentum: ``v = momentum * v - rate * g``, then ``w += v``, or Nesterov's update.

    Nesterov's update is ``w += momentum * v - rate * g``, with the new v.

    Parameters
    ----------
    eta0 : float, default=0.01
        Rate that the schedule starts with.
    alpha : float, default=0.0001
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float, default=0.25
        Exponent of the schedule ``"invscaling"``.
    learning_rate : str or BaseSchedule, default="invscaling"
        Alias of ``schedule``, used if that is None.
    momentum : float, default=0.9
        Share of the previous step that is kept, in [0, 1).
    nesterov : bool, default=True
        Whether to use Nesterov's update.
    schedule : str or BaseSchedule, default=None
        Schedule, see :class:`~ortlearn.learning_rates.LearningRateSGD`.

    References
    ----------
    Sutskever, I., Martens, J., Dahl, G. and Hinton, G., "On the importance of initialization and
    momentum in deep learning", ICML 2013.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateSGDNesterov
    >>> LearningRateSGDNesterov(eta0=0.1, learning_rate="constant").rate(10)
    0.1
    """

    scales_gradient = True
    elementwise = True

    def __init__(
        self,
        eta0: float = 0.01,
        alpha: float = 0.0001,
        power_t: float = 0.25,
        learning_rate: Any = "invscaling",
        momentum: float = 0.9,
        nesterov: bool = True,
        schedule: Any = None,
    ) -> None:
        super().__init__(
            eta0=eta0, alpha=alpha, power_t=power_t, learning_rate=learning_rate, schedule=schedule
        )
        self.momentum = momentum
        self.nesterov = nesterov

    def check(self) -> None:
        """Check the parameters before training."""
        super().check()
        self.check_number("momentum", high=1.0, closed=True)
        self.check_flag("nesterov")

    @property
    def proximal_scale(self) -> float | None:
        """Movement of a weight per update under a constant gradient, in units of the rate."""
        return 1.0 / (1.0 - float(self.momentum))

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight: a velocity of zero."""
        return {"velocity": np.zeros_like(weight)}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        momentum = float(self.momentum)
        step = op.Mul(gradient, rate)
        velocity = op.Sub(op.Mul(state["velocity"], momentum), step)
        move = op.Sub(op.Mul(velocity, momentum), step) if self.nesterov else velocity
        return op.Add(weight, move), {"velocity": velocity}
