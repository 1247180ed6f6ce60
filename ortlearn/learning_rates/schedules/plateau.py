"""Reduce the rate when the training loss stops improving."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .base import BaseSchedule

__all__ = ["PlateauSchedule"]


class _Memory(NamedTuple):
    """The lowest loss, consecutive epochs without improvement, remaining cooldown, and reductions."""

    best: float = math.inf
    idle: int = 0
    waiting: int = 0
    steps: int = 0


class PlateauSchedule(BaseSchedule):
    """Reduce on plateau: ``eta0``, multiplied by a factor each time the training loss stops improving.

    A loss is an improvement if it is below ``best - threshold * |best|``. After more than ``patience``
    consecutive epochs without improvement the rate is reduced, and the next ``cooldown`` epochs are not
    counted.

    Parameters
    ----------
    factor : float, default=0.1
        Factor of a reduction, in (0, 1).
    patience : int, default=10
        Number of consecutive epochs without improvement that are tolerated.
    threshold : float, default=0.0001
        Smallest relative decrease of the best loss that counts as an improvement, 0 or more.
    cooldown : int, default=0
        Number of epochs after a reduction that are not counted.
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

    def __init__(
        self,
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        cooldown: int = 0,
        minimum: float = 1e-8,
    ) -> None:
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.cooldown = cooldown
        self.minimum = minimum

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_number("factor", high=1.0)
        self.check_count("patience", low=0)
        self.check_number("threshold", closed=True)
        self.check_count("cooldown", low=0)
        self.check_number("minimum")

    def start(self) -> Any:
        """Return the memory before the first epoch."""
        return _Memory()

    def remember(self, memory: Any, loss: float) -> Any:
        """Return the memory after an epoch."""
        bound = memory.best - self.threshold * abs(memory.best) if memory.best < math.inf else math.inf
        best, idle = (loss, 0) if loss < bound else (memory.best, memory.idle + 1)
        if memory.waiting:
            return _Memory(best, 0, memory.waiting - 1, memory.steps)
        if idle > self.patience:
            return _Memory(best, 0, self.cooldown, memory.steps + 1)
        return _Memory(best, idle, 0, memory.steps)

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        steps = 0 if memory is None else memory.steps
        return max(eta0 * self.factor**steps, min(self.minimum, eta0))
