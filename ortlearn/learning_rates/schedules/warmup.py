"""Linear warm-up, followed by another schedule."""

from __future__ import annotations

import copy
from typing import Any

from .base import BaseSchedule
from .resolve import resolve_schedule

__all__ = ["WarmUpSchedule"]


class WarmUpSchedule(BaseSchedule):
    """Linear warm-up: the rate rises in equal steps to the first rate of another schedule, which follows.

    In epoch e < ``epochs`` it is ``r * (first + (1 - first) * e / epochs)``, where r is the rate of the
    other schedule in its epoch 0; then that schedule's rate in epoch ``e - epochs``. A schedule that
    depends on the losses gets those after the warm-up.

    Parameters
    ----------
    epochs : int, default=None
        Epochs of the warm-up; 5 % of the epochs of the training by default.
    first : float, default=0.1
        First rate, as a share of r, in (0, 1).
    then : str or BaseSchedule, default="constant"
        Schedule after the warm-up, which spans the remaining epochs.

    References
    ----------
    Goyal, P. et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", 2017,
    section 2.2.

    Examples
    --------
    >>> from ortlearn.learning_rates import StepSchedule, WarmUpSchedule
    >>> schedule = WarmUpSchedule(epochs=2, first=0.5, then=StepSchedule(period=1))
    >>> [round(schedule.rate(epoch, eta0=1.0), 3) for epoch in range(5)]
    [0.5, 0.75, 1.0, 0.1, 0.01]
    """

    spans = {"epochs": 0.05}

    def __init__(self, epochs: Any = None, first: float = 0.1, then: Any = "constant") -> None:
        self.epochs = epochs
        self.first = first
        self.then = then

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_length("epochs")
        self.check_number("first", high=1.0)
        resolve_schedule(self.then).check()

    def for_epochs(self, n_epochs: int) -> Any:
        """Return the schedule for a training with a given number of epochs."""
        schedule = super().for_epochs(n_epochs)
        then = resolve_schedule(self.then)
        spanning = then.for_epochs(max(n_epochs - schedule.epochs, 1))
        if spanning is not then:
            schedule = copy.copy(schedule)
            schedule.then = spanning
        return schedule

    def start(self) -> Any:
        """Return the memory before the first epoch."""
        inner = resolve_schedule(self.then).start()
        return None if inner is None else (0, inner)

    def remember(self, memory: Any, loss: float) -> Any:
        """Return the memory after an epoch."""
        if memory is None:
            return None
        passed, inner = memory
        if passed >= self.length("epochs"):
            inner = resolve_schedule(self.then).remember(inner, loss)
        return passed + 1, inner

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch."""
        inner = () if memory is None else (memory[1],)
        then, epochs = resolve_schedule(self.then), self.length("epochs")
        if epoch >= epochs:
            return then.rate(epoch - epochs, eta0, *inner)
        return then.rate(0, eta0, *inner) * (self.first + (1.0 - self.first) * epoch / epochs)
