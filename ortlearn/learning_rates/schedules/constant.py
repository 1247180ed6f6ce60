"""The same rate in every epoch."""

from __future__ import annotations

from typing import Any

from .base import BaseSchedule

__all__ = ["ConstantSchedule"]


class ConstantSchedule(BaseSchedule):
    """Constant: ``eta0`` in every epoch.

    Examples
    --------
    >>> from ortlearn.learning_rates import ConstantSchedule
    >>> ConstantSchedule().rate(7, eta0=0.1)
    0.1
    """

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        return float(eta0)
