"""Learning rates whose schedule is given by name or as an object."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Hashable
from typing import Any

from ..exceptions import PluginError
from .base import BaseLearningRate
from .schedules import BaseSchedule, resolve_schedule

__all__ = ["ScheduledLearningRate"]

SCHEDULE = ("eta0", "alpha", "power_t", "learning_rate", "schedule")


class ScheduledLearningRate(BaseLearningRate):
    """Base class of the built-in learning rates; a subclass writes only the update.

    Parameters
    ----------
    eta0 : float
        Rate that the schedule starts with.
    alpha : float
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float
        Exponent of the schedule ``"invscaling"``.
    learning_rate : str or BaseSchedule
        Alias of ``schedule``, used if that is None.
    schedule : str or BaseSchedule, default=None
        Schedule. A schedule given by name has default parameters, except for those above, and spans the
        epochs of the training.
    """

    schedule: str | BaseSchedule | None = None  # of objects that were pickled without it

    def __init__(self, eta0: Any, alpha: Any, power_t: Any, learning_rate: Any, schedule: Any = None) -> None:
        self.eta0 = eta0
        self.alpha = alpha
        self.power_t = power_t
        self.learning_rate = learning_rate
        self.schedule = schedule

    def _given(self) -> str:
        """Return the name of the parameter that has the schedule."""
        return "learning_rate" if self.schedule is None else "schedule"

    def with_schedule(self, schedule: BaseSchedule) -> ScheduledLearningRate:
        """Return a copy with another schedule.

        Parameters
        ----------
        schedule : BaseSchedule
            Schedule.

        Returns
        -------
        ScheduledLearningRate
            Copy.
        """
        rate = copy.copy(self)
        setattr(rate, self._given(), schedule)
        return rate

    def resolved_schedule(self) -> BaseSchedule:
        """Return the schedule.

        Returns
        -------
        BaseSchedule
            The given schedule, or one created from its name and the shared parameters.
        """
        return resolve_schedule(getattr(self, self._given()), alpha=self.alpha, power_t=self.power_t)

    def for_epochs(self, n_epochs: int) -> BaseLearningRate:
        """Return the learning rate for a training with a given number of epochs."""
        schedule = self.resolved_schedule()
        spanning = schedule.for_epochs(n_epochs)
        if spanning is schedule:
            return self
        return self.with_schedule(spanning)

    def rate(self, epoch: int, memory: Any = None) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        schedule = self.resolved_schedule()
        if memory is None:
            return schedule.rate(epoch, self.eta0)
        return schedule.rate(epoch, self.eta0, memory)

    def start(self) -> Any:
        """Return the memory of the schedule before the first epoch."""
        return self.resolved_schedule().start()

    def remember(self, memory: Any, loss: float) -> Any:
        """Return the memory of the schedule after an epoch."""
        return self.resolved_schedule().remember(memory, loss)

    def graph_key(self) -> Hashable:
        """Return a key of the nodes of the update, which do not depend on the schedule."""
        params = {k: repr(v) for k, v in self.get_params(deep=False).items() if k not in SCHEDULE}
        return type(self), tuple(sorted(params.items()))

    def set_params(self, **params: Any) -> Any:
        """Set parameters, including those of the schedule (``schedule__period``).

        Parameters
        ----------
        **params : object
            Values by name.

        Returns
        -------
        ScheduledLearningRate
            This object.

        Raises
        ------
        ValueError
            If a parameter is unknown, or belongs to a schedule that is given by name.
        """
        for name in ("learning_rate", "schedule"):
            schedule = params.get(name, getattr(self, name))
            nested = [key for key in params if key.startswith(f"{name}__")]
            if nested and not isinstance(schedule, BaseSchedule):
                raise ValueError(
                    f"{nested[0]!r} cannot be set, since {name}={schedule!r} is not an object. Pass an "
                    f"object, such as {name}=CosineSchedule()."
                )
        return super().set_params(**params)

    def check(self) -> None:
        """Check the parameters before training."""
        known = inspect.signature(type(self)).parameters.get("learning_rate")
        if self.schedule is not None and known is not None and self.learning_rate != known.default:
            raise PluginError(
                f"{type(self).__name__}: 'learning_rate' is another name of 'schedule': pass one of them."
            )
        try:
            schedule = self.resolved_schedule()
        except PluginError as error:
            name = self._given()
            text = f"{type(self).__name__}: {name}={getattr(self, name)!r} is not a schedule. {error}"
            raise type(error)(text) from error
        self.check_number("eta0")
        # As in scikit-learn, alpha may be 0 if the schedule does not use it.
        self.check_number("alpha", closed=True)
        self.check_number("power_t", low=-math.inf)
        schedule.check()
