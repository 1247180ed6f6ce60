"""The same rate in every epoch."""

from __future__ import annotations

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

    def rate(self, epoch, eta0, memory=None):
        """Return the rate of an epoch."""
        return float(eta0)
