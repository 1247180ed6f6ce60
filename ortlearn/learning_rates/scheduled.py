"""Learning rates whose schedule is given by name or as an object."""

from __future__ import annotations

import copy
import math

from ..exceptions import PluginError
from .base import BaseLearningRate
from .schedules import BaseSchedule, resolve_schedule

__all__ = ["ScheduledLearningRate"]

SCHEDULE = ("eta0", "alpha", "power_t", "learning_rate")


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
        Schedule. A schedule given by name has default parameters, except for those above, and spans the
        epochs of the training.
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
            The given schedule, or one created from its name and the shared parameters.
        """
        return resolve_schedule(self.learning_rate, alpha=self.alpha, power_t=self.power_t)

    def for_epochs(self, n_epochs):
        """Return the learning rate for a training with a given number of epochs."""
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
        """Return the memory of the schedule before the first epoch."""
        return self.schedule().start()

    def remember(self, memory, loss):
        """Return the memory of the schedule after an epoch."""
        return self.schedule().remember(memory, loss)

    def graph_key(self):
        """Return a key of the nodes of the update, which do not depend on the schedule."""
        params = {k: repr(v) for k, v in self.get_params(deep=False).items() if k not in SCHEDULE}
        return type(self), tuple(sorted(params.items()))

    def set_params(self, **params):
        """Set parameters, including those of the schedule (``learning_rate__period``).

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
        schedule = params.get("learning_rate", self.learning_rate)
        nested = [key for key in params if key.startswith("learning_rate__")]
        if nested and not isinstance(schedule, BaseSchedule):
            raise ValueError(
                f"{nested[0]!r} cannot be set, since learning_rate={schedule!r} is not an object. Pass an "
                "object, such as learning_rate=CosineSchedule()."
            )
        return super().set_params(**params)

    def check(self):
        """Check the parameters before training."""
        try:
            schedule = self.schedule()
        except PluginError as error:
            text = f"{type(self).__name__}: learning_rate={self.learning_rate!r} is not a schedule. {error}"
            raise type(error)(text) from error
        self.check_number("eta0")
        # As in scikit-learn, alpha may be 0 if the schedule does not use it.
        self.check_number("alpha", closed=True)
        self.check_number("power_t", low=-math.inf)
        schedule.check()
