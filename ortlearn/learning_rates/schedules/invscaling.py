"""Inverse of a power of the epoch."""

from __future__ import annotations

import math
from typing import Any

from .base import BaseSchedule

__all__ = ["InvScalingSchedule"]


class InvScalingSchedule(BaseSchedule):
    """Inverse scaling: ``eta0 / (e + 1) ** power_t`` in epoch e = 0, 1, ...

    Parameters
    ----------
    power_t : float, default=0.25
        Exponent. scikit-learn's SGDRegressor has the same default and counts updates, not epochs.

    References
    ----------
    Robbins, H. and Monro, S., "A stochastic approximation method", Annals of Mathematical
    Statistics 22 (1951), 400-407: such rates converge for exponents in (1/2, 1].

    Examples
    --------
    >>> from ortlearn.learning_rates import InvScalingSchedule
    >>> InvScalingSchedule(power_t=0.5).rate(3, eta0=0.1)
    0.05
    """

    shared = ("power_t",)

    def __init__(self, power_t: float = 0.25) -> None:
        self.power_t = power_t

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("power_t", low=-math.inf)

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        return eta0 / (epoch + 1) ** self.power_t
