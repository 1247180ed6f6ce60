"""Base class of schedules: the rate of an epoch, which may depend on earlier losses."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ...parameters import CheckedParameters

__all__ = ["BaseSchedule"]

#: Epochs of a training whose number of epochs is not known: the default of ``max_iter``.
DEFAULT_EPOCHS = 100


class BaseSchedule(CheckedParameters):
    """Base class of schedules.

    A subclass stores its parameters in its constructor and gives the rate of an epoch
    (:meth:`rate`). One that reacts to the training loss also says what it remembers of the losses
    (:meth:`start` and :meth:`remember`): the training loop keeps that, the schedule itself never
    changes.

    Attributes
    ----------
    shared : tuple of str
        Parameters that a learning rate hands on where it names the schedule instead of giving an
        object.
    spans : mapping of str to float
        Parameters that count epochs and may be None, which stands for this share of the epochs of the
        training (``max_iter`` of an estimator, 100 without one).
    """

    shared: ClassVar[tuple[str, ...]] = ()
    spans: ClassVar[Mapping[str, float]] = MappingProxyType({})

    def for_epochs(self, n_epochs: int) -> BaseSchedule:
        """Return the schedule of a training of so many epochs.

        Parameters
        ----------
        n_epochs : int
            Number of epochs, 1 or more.

        Returns
        -------
        BaseSchedule
            This object, or a copy with numbers in place of each None among :attr:`spans`.

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
        """Return the value of one of :attr:`spans`, in a training of so many epochs where it is None.

        Parameters
        ----------
        parameter : str
            Its name.
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
        """Check that a parameter is None or a whole number, ``low`` or more.

        Parameters
        ----------
        parameter : str
            Its name.
        low : int, default=1
            Lowest value.

        Raises
        ------
        PluginError
            If it is not.
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
            Rate to start with, of the learning rate the schedule belongs to.
        memory : object, default=None
            What is remembered of the losses so far; None for a schedule that looks at none.

        Returns
        -------
        float
            Rate, above 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must give the rate of an epoch.")

    def start(self) -> Any:
        """Return what is remembered before the first epoch; None for a schedule that looks at no loss."""
        return None

    def remember(self, memory: Any, loss: float) -> Any:
        """Return what is remembered once an epoch has ended.

        Parameters
        ----------
        memory : object
            What was remembered before; not to be changed.
        loss : float
            Mean training loss of the epoch.

        Returns
        -------
        object
            What is remembered now.
        """
        return memory
