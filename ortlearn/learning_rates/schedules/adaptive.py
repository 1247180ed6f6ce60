"""Divide the rate when the training loss no longer falls, as scikit-learn does."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .base import BaseSchedule

__all__ = ["AdaptiveSchedule"]


class _Memory(NamedTuple):
    """The lowest loss, the number of consecutive epochs without improvement, and of divisions."""

    best: float = math.inf
    idle: int = 0
    divisions: int = 0


class AdaptiveSchedule(BaseSchedule):
    """Adaptive: ``eta0``, divided by 5 each time the training loss does not fall in two consecutive epochs.

    An epoch does not improve if its loss is above ``best - tol``, where best is the lowest loss of earlier
    epochs. A rate of ``minimum`` or less is not divided any more; scikit-learn ends the training instead.

    Parameters
    ----------
    tol : float, default=0.0001
        Smallest decrease of the loss that counts as an improvement, 0 or more.
    patience : int, default=2
        Number of consecutive epochs without improvement after which the rate is divided.
    divisor : float, default=5.0
        Divisor of the rate, above 1.
    minimum : float, default=1e-6
        Rate at or below which it is not divided.

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

    def __init__(
        self, tol: float = 1e-4, patience: int = 2, divisor: float = 5.0, minimum: float = 1e-6
    ) -> None:
        self.tol = tol
        self.patience = patience
        self.divisor = divisor
        self.minimum = minimum

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("tol", closed=True)
        self.check_count("patience")
        self.check_number("divisor", low=1.0)
        self.check_number("minimum")

    def start(self) -> Any:
        """Return the memory before the first epoch."""
        return _Memory()

    def remember(self, memory: Any, loss: float) -> Any:
        """Return the memory after an epoch."""
        idle = memory.idle + 1 if loss > memory.best - self.tol else 0
        divided = idle >= self.patience
        return _Memory(min(memory.best, loss), 0 if divided else idle, memory.divisions + divided)

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        rate = float(eta0)
        for _ in range(0 if memory is None else memory.divisions):
            if rate <= self.minimum:
                break
            rate /= self.divisor
        return rate
