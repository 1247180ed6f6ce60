"""Reduction of the rate after every period."""

from __future__ import annotations

from typing import Any

from .base import BaseSchedule

__all__ = ["StepSchedule"]


class StepSchedule(BaseSchedule):
    """Steps: ``eta0 * factor ** (e // period)`` in epoch e = 0, 1, ...

    Parameters
    ----------
    period : int, default=None
        Number of epochs of a step; 30 % of the epochs of the training by default.
    factor : float, default=0.1
        Factor of the rate after each step, in (0, 1).

    References
    ----------
    ``StepLR`` of torch.optim, whose ``gamma`` is ``factor``.

    Examples
    --------
    >>> from ortlearn.learning_rates import StepSchedule
    >>> [StepSchedule(period=2, factor=0.5).rate(epoch, eta0=1.0) for epoch in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    spans = {"period": 0.3}

    def __init__(self, period: Any = None, factor: float = 0.1) -> None:
        self.period = period
        self.factor = factor

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_length("period")
        self.check_number("factor", high=1.0)

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        return eta0 * self.factor ** (epoch // self.length("period"))
