"""A learning rate whose schedule is chosen by name, or given as an object."""

from __future__ import annotations

import copy
import math

from ..exceptions import PluginError
from .base import BaseLearningRate
from .schedules import BaseSchedule, resolve_schedule

__all__ = ["ScheduledLearningRate"]

SCHEDULE = ("eta0", "alpha", "power_t", "learning_rate")


class ScheduledLearningRate(BaseLearningRate):
    """Base of the built-in learning rates: a subclass writes the update only.

    Parameters
    ----------
    eta0 : float
        Rate that the schedule starts with.
    alpha : float
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float
        Exponent of the schedule ``"invscaling"``.
    learning_rate : str or BaseSchedule
        Schedule. One that is named has its default parameters, or those above, and spans the epochs of
        the training.
    """

    def __init__(self, eta0, alpha, power_t, learning_rate):
        self.eta0 = eta0
        self.alpha = alpha
        self.power_t = power_t
        self.learning_rate = learning_rate

    def schedule(self) -> BaseSchedule:
        """Return the schedule.

        Returns
        -------
        BaseSchedule
            The one given, or made from its name and the parameters it shares.
        """
        return resolve_schedule(self.learning_rate, alpha=self.alpha, power_t=self.power_t)

    def for_epochs(self, n_epochs):
        """Return the learning rate of a training of so many epochs."""
        schedule = self.schedule()
        spanning = schedule.for_epochs(n_epochs)
        if spanning is schedule:
            return self
        rate = copy.copy(self)
        rate.learning_rate = spanning
        return rate

    def rate(self, epoch, memory=None):
        """Return the learning rate of an epoch, counted from 0."""
        schedule = self.schedule()
        if memory is None:
            return schedule.rate(epoch, self.eta0)
        return schedule.rate(epoch, self.eta0, memory)

    def start(self):
        """Return what the schedule remembers before the first epoch."""
        return self.schedule().start()

    def remember(self, memory, loss):
        """Return what the schedule remembers once an epoch has ended."""
        return self.schedule().remember(memory, loss)

    def graph_key(self):
        """Return what the nodes of the update depend on: the schedule is not among it."""
        params = {k: repr(v) for k, v in self.get_params(deep=False).items() if k not in SCHEDULE}
        return type(self), tuple(sorted(params.items()))

    def set_params(self, **params):
        """Set parameters, those of the schedule too (``learning_rate__period``).

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
            If a parameter is unknown, or belongs to a schedule that is given by its name.
        """
        schedule = params.get("learning_rate", self.learning_rate)
        nested = [key for key in params if key.startswith("learning_rate__")]
        if nested and not isinstance(schedule, BaseSchedule):
            raise ValueError(
                f"{nested[0]!r} cannot be set while learning_rate={schedule!r} is not an object: pass one "
                "instead, such as learning_rate=CosineSchedule()."
            )
        return super().set_params(**params)

    def check(self):
        """Check the parameters before training."""
        try:
            schedule = self.schedule()
        except PluginError as error:
            text = f"{type(self).__name__}: learning_rate={self.learning_rate!r} is no schedule. {error}"
            raise type(error)(text) from error
        self.check_number("eta0")
        # As in scikit-learn, alpha may be 0 where the schedule does not use it.
        self.check_number("alpha", closed=True)
        self.check_number("power_t", low=-math.inf)
        schedule.check()
