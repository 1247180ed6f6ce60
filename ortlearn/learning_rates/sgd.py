"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graphs import GraphBuilder
from .scheduled import ScheduledLearningRate

__all__ = ["LearningRateSGD"]


class LearningRateSGD(ScheduledLearningRate):
    """Stochastic gradient descent: ``w -= rate * g``.

    Parameters
    ----------
    eta0 : float, default=0.01
        Rate that the schedule starts with.
    alpha : float, default=0.0001
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float, default=0.25
        Exponent of the schedule ``"invscaling"``.
    learning_rate : str or BaseSchedule, default="invscaling"
        Alias of ``schedule``, as in scikit-learn; used if ``schedule`` is None.
    schedule : str or BaseSchedule, default=None
        Schedule, by name or as an object with its own parameters: ``"constant"``,
        ``"invscaling"``, ``"optimal"``, ``"adaptive"``, ``"exponential"``, ``"step"``, ``"cosine"``,
        ``"one_cycle"``, ``"warmup"``, ``"plateau"``, or a schedule of another distribution.

    Examples
    --------
    >>> from ortlearn.learning_rates import LearningRateSGD
    >>> LearningRateSGD(eta0=0.1, power_t=0.5).rate(3)
    0.05
    """

    scales_gradient = True
    elementwise = True

    def __init__(
        self,
        eta0: float = 0.01,
        alpha: float = 0.0001,
        power_t: float = 0.25,
        learning_rate: Any = "invscaling",
        schedule: Any = None,
    ) -> None:
        super().__init__(
            eta0=eta0, alpha=alpha, power_t=power_t, learning_rate=learning_rate, schedule=schedule
        )

    @property
    def proximal_scale(self) -> float | None:
        """Movement of a weight per update under a constant gradient, in units of the rate."""
        return 1.0

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight."""
        return op.Sub(weight, op.Mul(gradient, rate)), {}
