"""Cosine annealing from the first rate to the last, once or with restarts."""

from __future__ import annotations

import math
from typing import Any

from .base import BaseSchedule

__all__ = ["CosineSchedule"]


class CosineSchedule(BaseSchedule):
    """Cosine: ``eta0 * (final + (1 - final) * (1 + cos(pi * e / period)) / 2)`` in epoch e = 0, 1, ...

    From epoch ``period`` on the rate is ``final * eta0``, or the schedule restarts.

    Parameters
    ----------
    period : int, default=None
        Epochs until the last rate; all epochs of the training by default.
    final : float, default=0.01
        Last rate, as a share of ``eta0``, in (0, 1).
    restarts : bool, default=False
        Whether e restarts at 0 after each period.

    References
    ----------
    Loshchilov, I. and Hutter, F., "SGDR: stochastic gradient descent with warm restarts",
    ICLR 2017, equation 5.

    Examples
    --------
    >>> from ortlearn.learning_rates import CosineSchedule
    >>> [round(CosineSchedule(period=4).rate(epoch, eta0=1.0), 3) for epoch in range(6)]
    [1.0, 0.855, 0.505, 0.155, 0.01, 0.01]
    """

    spans = {"period": 1.0}

    def __init__(self, period: Any = None, final: float = 0.01, restarts: bool = False) -> None:
        self.period = period
        self.final = final
        self.restarts = restarts

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_length("period")
        self.check_number("final", high=1.0)
        self.check_flag("restarts")

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        period = self.length("period")
        passed = epoch % period if self.restarts else min(epoch, period)
        share = (1.0 + math.cos(math.pi * passed / period)) / 2.0
        return eta0 * (self.final + (1.0 - self.final) * share)
