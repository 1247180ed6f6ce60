"""What every schedule is: the rate of an epoch, and what it remembers of the losses."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import plugins
from ...exceptions import PluginError
from ...parameters import CheckedParameters

__all__ = ["BaseSchedule", "resolve_schedule"]


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


def resolve_schedule(spec: Any, **shared: Any) -> BaseSchedule:
    """Return the schedule a user asked for: a name, a class or an object.

    Parameters
    ----------
    spec : str, type or BaseSchedule
        An object is returned as it is.
    **shared
        Parameters for a schedule that has them among its :attr:`BaseSchedule.shared` ones.

    Returns
    -------
    BaseSchedule
        Schedule, its parameters not checked yet.

    Raises
    ------
    PluginError
        If it is none of these, or unknown.

    Examples
    --------
    >>> from ortlearn.learning_rates.schedules import resolve_schedule
    >>> resolve_schedule("invscaling", alpha=0.1, power_t=0.5)
    InvScalingSchedule(power_t=0.5)
    """
    kind = plugins.get(plugins.SCHEDULES, spec) if isinstance(spec, str) else spec
    if isinstance(kind, type) and issubclass(kind, BaseSchedule):
        return kind(**{name: value for name, value in shared.items() if name in kind.shared})
    if isinstance(kind, BaseSchedule):
        return kind
    raise PluginError(
        f"{spec!r} is not a schedule: pass a name, or a subclass or an instance of BaseSchedule."
    )
