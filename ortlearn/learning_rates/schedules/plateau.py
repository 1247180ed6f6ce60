"""Lower the rate when the training loss stays where it is."""

from __future__ import annotations

import math
from typing import NamedTuple

from .base import BaseSchedule

__all__ = ["PlateauSchedule"]


class _Memory(NamedTuple):
    """The best loss, epochs running without a better one, epochs left to wait, and steps so far."""

    best: float = math.inf
    idle: int = 0
    waiting: int = 0
    steps: int = 0


class PlateauSchedule(BaseSchedule):
    """Reduce on plateau: ``eta0``, multiplied by a factor each time the training loss stays where it is.

    A loss is better than the best so far when it is below ``best - threshold * |best|``. After more
    than ``patience`` epochs running without a better one the rate is lowered, then ``cooldown`` epochs
    do not count.

    Parameters
    ----------
    factor : float, default=0.1
        What the rate is multiplied by, in (0, 1).
    patience : int, default=10
        Epochs running without a better loss that change nothing.
    threshold : float, default=0.0001
        By which share of it the best loss must fall, at least 0.
    cooldown : int, default=0
        Epochs after a change that do not count.
    minimum : float, default=1e-8
        Lowest rate.

    References
    ----------
    ``ReduceLROnPlateau`` of torch.optim with a relative threshold.

    Examples
    --------
    >>> from ortlearn.learning_rates import PlateauSchedule
    >>> schedule = PlateauSchedule(patience=1, factor=0.5)
    >>> memory = schedule.start()
    >>> for loss in [1.0, 0.5, 0.5, 0.5]:
    ...     memory = schedule.remember(memory, loss)
    >>> schedule.rate(4, eta0=0.1, memory=memory)
    0.05
    """

    def __init__(self, factor=0.1, patience=10, threshold=1e-4, cooldown=0, minimum=1e-8):
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.cooldown = cooldown
        self.minimum = minimum

    def check(self):
        """Check the parameters before training."""
        self.check_number("factor", high=1.0)
        self.check_count("patience", low=0)
        self.check_number("threshold", closed=True)
        self.check_count("cooldown", low=0)
        self.check_number("minimum")

    def start(self):
        """Return what is remembered before the first epoch."""
        return _Memory()

    def remember(self, memory, loss):
        """Return what is remembered once an epoch has ended."""
        bound = memory.best - self.threshold * abs(memory.best) if memory.best < math.inf else math.inf
        best, idle = (loss, 0) if loss < bound else (memory.best, memory.idle + 1)
        if memory.waiting:
            return _Memory(best, 0, memory.waiting - 1, memory.steps)
        if idle > self.patience:
            return _Memory(best, 0, self.cooldown, memory.steps + 1)
        return _Memory(best, idle, 0, memory.steps)

    def rate(self, epoch, eta0, memory=None):
        """Return the rate of an epoch."""
        steps = 0 if memory is None else memory.steps
        return max(eta0 * self.factor**steps, min(self.minimum, eta0))
