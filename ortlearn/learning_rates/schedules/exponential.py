"""Exponential decay of the rate."""

from __future__ import annotations

from typing import Any

from .base import BaseSchedule

__all__ = ["ExponentialSchedule"]


class ExponentialSchedule(BaseSchedule):
    """Exponential decay: ``eta0 * decay ** e`` in epoch e = 0, 1, ...

    Parameters
    ----------
    decay : float, default=0.95
        Factor of the rate from one epoch to the next, in (0, 1).

    References
    ----------
    ``ExponentialLR`` of torch.optim, whose ``gamma`` is ``decay``.

    Examples
    --------
    >>> from ortlearn.learning_rates import ExponentialSchedule
    >>> ExponentialSchedule(decay=0.5).rate(3, eta0=0.8)
    0.1
    """

    def __init__(self, decay: float = 0.95) -> None:
        self.decay = decay

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("decay", high=1.0)

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        return eta0 * self.decay**epoch
