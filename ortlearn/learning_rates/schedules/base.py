"""Base class of schedules."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ...parameters import CheckedParameters

__all__ = ["BaseSchedule"]

#: Number of epochs if it is unknown, the default of ``max_iter``.
DEFAULT_EPOCHS = 100


class BaseSchedule(CheckedParameters):
    """Base class of schedules.

    A subclass stores its parameters in its constructor and returns the rate of an epoch
    (:meth:`rate`). If it depends on the training loss, it also returns its memory of the losses
    (:meth:`start` and :meth:`remember`), which the training loop keeps: the schedule itself does not
    change.

    Attributes
    ----------
    shared : tuple of str
        Parameters that a learning rate passes to a schedule that it has by name.
    spans : mapping of str to float
        Parameters that count epochs and may be None; the values are their defaults, as shares of the epochs
        of the training (``max_iter`` of an estimator, otherwise 100).
    """

    shared: ClassVar[tuple[str, ...]] = ()
    spans: ClassVar[Mapping[str, float]] = MappingProxyType({})

    def for_epochs(self, n_epochs: int) -> BaseSchedule:
        """Return the schedule for a training with a given number of epochs.

        Parameters
        ----------
        n_epochs : int
            Number of epochs, 1 or more.

        Returns
        -------
        BaseSchedule
            This object, or a copy in which each parameter of :attr:`spans` that is None has a number.

        Examples
        --------
        >>> from ortlearn.learning_rates import CosineSchedule
        >>> CosineSchedule().for_epochs(20), CosineSchedule(period=7).for_epochs(20)
        (CosineSchedule(period=20), CosineSchedule(period=7))
        """
        open_lengths = [name for name in self.spans if getattr(self, name) is None]
        if not open_lengths:
            return self
        schedule = copy.copy(self)
        for name in open_lengths:
            setattr(schedule, name, self.length(name, n_epochs))
        return schedule

    def length(self, parameter: str, n_epochs: int = DEFAULT_EPOCHS) -> int:
        """Return the value of a parameter of :attr:`spans`, or its default for a number of epochs.

        Parameters
        ----------
        parameter : str
            Name of the parameter.
        n_epochs : int, default=100
            Number of epochs.

        Returns
        -------
        int
            Number of epochs, 1 or more.
        """
        value = getattr(self, parameter)
        return max(1, round(self.spans[parameter] * n_epochs)) if value is None else value

    def check_length(self, parameter: str, *, low: int = 1) -> None:
        """Check that a parameter is None or an integer of at least ``low``.

        Parameters
        ----------
        parameter : str
            Name of the parameter.
        low : int, default=1
            Lowest value.

        Raises
        ------
        PluginError
            If the value is invalid.
        """
        if getattr(self, parameter) is not None:
            self.check_count(parameter, low=low)

    def rate(self, epoch: int, eta0: float, memory: Any = None) -> float:
        """Return the rate of an epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch, from 0.
        eta0 : float
            Initial rate, of the learning rate that has the schedule.
        memory : object, default=None
            Memory of the losses so far; None if the schedule does not depend on losses.

        Returns
        -------
        float
            Rate, above 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no rates: implement rate.")

    def start(self) -> Any:
        """Return the memory before the first epoch; None if the schedule does not depend on losses."""
        return None

    def remember(self, memory: Any, loss: float) -> Any:
        """Return the memory after an epoch.

        Parameters
        ----------
        memory : object
            Memory before the epoch; must not be changed.
        loss : float
            Mean training loss of the epoch.

        Returns
        -------
        object
            Memory after the epoch.
        """
        return memory
