"""What every learning rate is: a schedule and an update rule, which know nothing of each other."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from .. import plugins
from ..exceptions import PluginError
from ..graphs import GraphBuilder
from .schedules import SCHEDULES

__all__ = ["BaseLearningRate", "ScheduledLearningRate", "resolve_learning_rate"]


class BaseLearningRate(BaseEstimator):
    """Base class of learning rates.

    A subclass stores its parameters in its constructor, gives the rate of an epoch
    (:meth:`rate`), and writes how a weight is updated (:meth:`init` and :meth:`update`).

    Attributes
    ----------
    scales_gradient : bool
        Whether :meth:`update` uses the rate only as a factor of the gradient. The rate is then
        multiplied into the gradient of the loss, once for all weights.
    elementwise : bool
        Whether :meth:`update` treats each element of a weight by itself, with states of the weight's
        shape or of one number. All weights may then be updated as one vector.
    """

    scales_gradient: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__} must define its schedule.")

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight.

        Parameters
        ----------
        weight : ndarray
            Initial value of the weight.

        Returns
        -------
        dict of str to ndarray
            State by name, of the weight's type; empty for an update without memory.
        """
        return {}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight.

        Parameters
        ----------
        op : GraphBuilder
            Where the nodes go.
        weight : str
            Name of the weight.
        gradient : str
            Name of its gradient, of the same shape.
        state : mapping of str to str
            Names of its state, as made by :meth:`init`.
        rate : str
            Name of the learning rate, a scalar of shape ().

        Returns
        -------
        weight : str
            Name of the new weight.
        state : dict of str to str
            Names of the new state, with the keys of ``state``.
        """
        raise NotImplementedError(f"{type(self).__name__} must write its update.")

    def graph_key(self) -> Hashable:
        """Return what the nodes of :meth:`update` depend on; equal keys share compiled graphs."""
        return type(self), tuple(sorted((k, repr(v)) for k, v in self.get_params().items()))

    def check(self) -> None:
        """Check the parameters before training.

        Raises
        ------
        PluginError
            If one has a value that makes no sense.
        """


class ScheduledLearningRate(BaseLearningRate):
    """Base of the built-in learning rates: the schedule is chosen by name.

    Parameters
    ----------
    eta0 : float
        Initial rate.
    alpha : float
        Strength of the penalty in the schedule ``"optimal"``.
    power_t : float
        Exponent of the schedule ``"invscaling"``.
    learning_rate : {"constant", "invscaling", "optimal"}
        Schedule.
    """

    def __init__(self, eta0, alpha, power_t, learning_rate):
        self.eta0 = eta0
        self.alpha = alpha
        self.power_t = power_t
        self.learning_rate = learning_rate

    def graph_key(self):
        """Return what the nodes of the update depend on: the schedule is not among it."""
        schedule = {"eta0", "alpha", "power_t", "learning_rate"}
        params = {k: repr(v) for k, v in self.get_params().items() if k not in schedule}
        return type(self), tuple(sorted(params.items()))

    def rate(self, epoch):
        """Return the learning rate of an epoch, counted from 0."""
        return SCHEDULES[self.learning_rate](epoch, self.eta0, self.alpha, self.power_t)

    def check(self):
        """Check the parameters before training."""
        name = type(self).__name__
        if self.learning_rate not in list(SCHEDULES):
            raise PluginError(
                f"{name}: learning_rate={self.learning_rate!r} is no schedule, "
                f"use one of {sorted(SCHEDULES)}."
            )
        self.check_number("eta0")
        # As in scikit-learn, alpha may be 0 where the schedule does not use it.
        self.check_number("alpha", closed=self.learning_rate != "optimal")
        self.check_number("power_t", low=-math.inf)

    def check_number(
        self, parameter: str, *, low: float = 0.0, high: float = math.inf, closed: bool = False
    ) -> None:
        """Check that a parameter is a number between two others.

        Parameters
        ----------
        parameter : str
            Its name.
        low, high : float
            Bounds, themselves excluded.
        closed : bool, default=False
            Whether the lower bound is allowed.

        Raises
        ------
        PluginError
            If it is not.
        """
        value = getattr(self, parameter)
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number) and (low < number < high or (closed and number == low)):
                return
        interval = f" in {'[' if closed else '('}{low:g}, {high:g})" if math.isfinite(low) else ""
        raise PluginError(f"{type(self).__name__}: {parameter}={value!r} must be a finite number{interval}.")


def resolve_learning_rate(spec: Any) -> BaseLearningRate:
    """Return the learning rate a user asked for: a number, a name, a class or an object.

    Parameters
    ----------
    spec : float, str, type or BaseLearningRate
        A number is SGD with that ``eta0`` and the default schedule.

    Returns
    -------
    BaseLearningRate
        New object, its parameters checked.

    Raises
    ------
    PluginError
        If it is none of these, or unknown, or if a parameter makes no sense.

    Examples
    --------
    >>> from ortlearn.learning_rates import resolve_learning_rate
    >>> resolve_learning_rate(0.1)
    LearningRateSGD(eta0=0.1)
    """
    if isinstance(spec, int | float | np.number) and not isinstance(spec, bool):
        rate = plugins.create(plugins.LEARNING_RATES, "SGD", BaseLearningRate, eta0=float(spec))
    else:
        rate = plugins.create(plugins.LEARNING_RATES, spec, BaseLearningRate)
    rate.check()
    return rate
