"""Base class of schedules: the rate of an epoch, which may depend on earlier losses."""

from __future__ import annotations

from typing import Any, ClassVar

from ...parameters import CheckedParameters

__all__ = ["BaseSchedule"]


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
    """

    shared: ClassVar[tuple[str, ...]] = ()

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
