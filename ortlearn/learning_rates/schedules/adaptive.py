"""Divide the rate when the training loss no longer falls, as scikit-learn does."""

from __future__ import annotations

import math
from typing import NamedTuple

from .base import BaseSchedule

__all__ = ["AdaptiveSchedule"]


class _Memory(NamedTuple):
    """The best loss, how many epochs running did not improve on it, and divisions so far."""

    best: float = math.inf
    idle: int = 0
    divisions: int = 0


class AdaptiveSchedule(BaseSchedule):
    """Adaptive: ``eta0``, divided by 5 each time the training loss does not fall for two epochs running.

    An epoch falls short when its loss is above ``best - tol``, where best is the lowest loss of the
    epochs before. A rate of ``minimum`` or less is divided no more; scikit-learn ends the training
    there.

    Parameters
    ----------
    tol : float, default=0.0001
        By how much the loss must fall, at least 0.
    patience : int, default=2
        Epochs running that may fall short before the rate is divided.
    divisor : float, default=5.0
        What the rate is divided by, above 1.
    minimum : float, default=1e-6
        Rate from which on it stays as it is.

    References
    ----------
    The schedule ``"adaptive"`` of scikit-learn's MLPRegressor, whose ``n_iter_no_change`` is
    ``patience - 1``, and of its SGDRegressor, whose ``n_iter_no_change`` is ``patience``.

    Examples
    --------
    >>> from ortlearn.learning_rates import AdaptiveSchedule
    >>> schedule = AdaptiveSchedule()
    >>> memory = schedule.start()
    >>> for loss in [1.0, 0.5, 0.5, 0.6]:
    ...     memory = schedule.remember(memory, loss)
    >>> schedule.rate(4, eta0=0.1, memory=memory)
    0.02
    """

    def __init__(self, tol=1e-4, patience=2, divisor=5.0, minimum=1e-6):
        self.tol = tol
        self.patience = patience
        self.divisor = divisor
        self.minimum = minimum

    def check(self):
        """Check the parameters before training."""
        self.check_number("tol", closed=True)
        self.check_count("patience")
        self.check_number("divisor", low=1.0)
        self.check_number("minimum")

    def start(self):
        """Return what is remembered before the first epoch."""
        return _Memory()

    def remember(self, memory, loss):
        """Return what is remembered once an epoch has ended."""
        idle = memory.idle + 1 if loss > memory.best - self.tol else 0
        divided = idle >= self.patience
        return _Memory(min(memory.best, loss), 0 if divided else idle, memory.divisions + divided)

    def rate(self, epoch, eta0, memory=None):
        """Return the rate of an epoch."""
        rate = float(eta0)
        for _ in range(0 if memory is None else memory.divisions):
            if rate <= self.minimum:
                break
            rate /= self.divisor
        return rate
