"""The rates of one training, epoch after epoch."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from .. import plugins
from .base import BaseLearningRate
from .scheduled import ScheduledLearningRate

__all__ = ["Rates"]


class Rates:
    """The rates of one training; what a schedule remembers of the losses is kept here, not in it.

    Parameters
    ----------
    learning_rate : BaseLearningRate
        Whose rates; it never changes.
    losses : iterable of float, default=()
        Mean losses of the epochs before, which the training goes on from.

    Examples
    --------
    >>> from ortlearn.learning_rates import AdaptiveSchedule, LearningRateSGD, Rates
    >>> rates = Rates(LearningRateSGD(eta0=0.1, learning_rate=AdaptiveSchedule()), losses=[0.5, 0.5])
    >>> rates.of(2)
    0.1
    >>> rates.note(0.5)
    >>> rates.of(3)
    0.02
    """

    def __init__(self, learning_rate: BaseLearningRate, losses: Iterable[float] = ()):
        if isinstance(learning_rate, ScheduledLearningRate):  # its schedule is looked up once
            schedule, learning_rate = learning_rate.schedule(), copy.copy(learning_rate)
            learning_rate.learning_rate = schedule
        self._learning_rate = learning_rate
        self._memory = learning_rate.start()
        for loss in () if self._memory is None else losses:
            self.note(loss)

    def of(self, epoch: int) -> float:
        """Return the rate of an epoch, counted from 0.

        Parameters
        ----------
        epoch : int
            Number of the epoch.

        Returns
        -------
        float
            Rate, given the losses noted so far.
        """
        with plugins.blamed(self._learning_rate, "rate"):
            if self._memory is None:
                return self._learning_rate.rate(epoch)
            return self._learning_rate.rate(epoch, self._memory)

    def note(self, loss: float) -> None:
        """Take note of the mean loss of an epoch that has ended.

        Parameters
        ----------
        loss : float
            Mean training loss, penalty included.
        """
        if self._memory is not None:
            self._memory = self._learning_rate.remember(self._memory, loss)
