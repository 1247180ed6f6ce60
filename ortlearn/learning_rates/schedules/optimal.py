"""Bottou's schedule for a penalised objective."""

from __future__ import annotations

import math
from typing import Any

from .base import BaseSchedule

__all__ = ["OptimalSchedule"]


class OptimalSchedule(BaseSchedule):
    """Bottou's schedule: ``1 / (alpha * (t0 + e))`` in epoch e = 0, 1, ...; ``eta0`` has no effect.

    t0 makes the first rate ``sqrt(1 / sqrt(alpha))``, the typical size of a weight under an l2
    penalty of strength alpha, for a loss with a slope of at most 1.

    Parameters
    ----------
    alpha : float, default=0.0001
        Strength of the penalty.

    References
    ----------
    Bottou, L., "Stochastic gradient descent tricks", in "Neural networks: tricks of the trade",
    Springer, 2012, section 5.2.

    Examples
    --------
    >>> from ortlearn.learning_rates import OptimalSchedule
    >>> round(OptimalSchedule(alpha=0.01).rate(0, eta0=1.0), 4)
    3.1623
    """

    shared = ("alpha",)

    def __init__(self, alpha: float = 0.0001) -> None:
        self.alpha = alpha

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("alpha")

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        first = math.sqrt(1.0 / math.sqrt(self.alpha))
        return 1.0 / (self.alpha * (1.0 / (first * self.alpha) + epoch))
