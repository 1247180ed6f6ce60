"""The rates of one training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import plugins
from ..exceptions import PluginError
from .base import BaseLearningRate
from .scheduled import ScheduledLearningRate

__all__ = ["Rates"]

#: Largest rate that is finite in float32.
LARGEST = float(np.finfo(np.float32).max)


class Rates:
    """The rates of one training, with the memory of losses that its schedule needs.

    Parameters
    ----------
    learning_rate : BaseLearningRate
        Learning rate; not changed.
    losses : iterable of float, default=()
        Mean losses of earlier epochs, if a training is continued.

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
        if isinstance(learning_rate, ScheduledLearningRate):  # resolve the schedule once
            learning_rate = learning_rate.with_schedule(learning_rate.resolved_schedule())
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

        Raises
        ------
        PluginError
            If the rate is negative, not a number, or not finite in float32.
        """
        memory = () if self._memory is None else (self._memory,)
        with plugins.blamed(self._learning_rate, "rate"):
            rate = self._learning_rate.rate(epoch, *memory)
        if not _is_rate(rate):
            raise PluginError(
                f"{self._learning_rate!r}: the schedule returned {rate!r} for epoch {epoch + 1}, "
                f"rate(epoch={epoch}). A rate must be a finite number of 0 or more. Correct the schedule or "
                "use another one."
            )
        return float(rate)

    def note(self, loss: float) -> None:
        """Add the mean loss of an epoch.

        Parameters
        ----------
        loss : float
            Mean training loss, penalty included.
        """
        if self._memory is not None:
            self._memory = self._learning_rate.remember(self._memory, loss)


def _is_rate(value: Any) -> bool:
    """Return whether a value is a valid rate."""
    if type(value) is float:
        return 0 <= value <= LARGEST
    if isinstance(value, str | bytes) or np.ndim(value) > 0 or np.iscomplexobj(value):
        return False
    try:
        return 0 <= float(value) <= LARGEST
    except (TypeError, ValueError, OverflowError):
        return False
