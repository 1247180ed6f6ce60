"""Base class of learning rates: a schedule and an update rule."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

from ..graphs import GraphBuilder
from ..parameters import CheckedParameters

__all__ = ["BaseLearningRate"]


class BaseLearningRate(CheckedParameters):
    """Base class of learning rates.

    A subclass stores its parameters in its constructor, returns the rate of an epoch
    (:meth:`rate`), and writes the update of a weight (:meth:`init` and :meth:`update`).
    :class:`ScheduledLearningRate` already has a schedule; :class:`BaseSolver` trains on all samples at
    once instead.

    Attributes
    ----------
    scales_gradient : bool
        Whether :meth:`update` uses the rate only as a factor of the gradient. The rate is then
        multiplied into the gradient of the loss, once for all weights.
    elementwise : bool
        Whether :meth:`update` treats each element of a weight separately, with states of the weight's shape
        or scalar states. All weights may then be updated as one vector.
    full_batch : bool
        Whether this is a solver.
    nonnegative_states : tuple of str
        States that are never negative, such as means of squares; others are rejected in training packages.
    """

    scales_gradient: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False
    full_batch: ClassVar[bool] = False
    nonnegative_states: ClassVar[tuple[str, ...]] = ()

    def rate(self, epoch: int, memory: Any = None) -> float:
        """Return the learning rate of an epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch, from 0.
        memory : object, default=None
            Memory of the losses so far; not passed if :meth:`start` returns None.

        Returns
        -------
        float
            Rate, above 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no schedule: implement rate.")

    def for_epochs(self, n_epochs: int) -> BaseLearningRate:
        """Return the learning rate for a training with a given number of epochs.

        Parameters
        ----------
        n_epochs : int
            Number of epochs, 1 or more.

        Returns
        -------
        BaseLearningRate
            This object, unless the schedule depends on the number.
        """
        return self

    @property
    def proximal_scale(self) -> float | None:
        """Movement of a weight per update under a constant gradient, in units of the rate.

        It scales the proximal step of a penalty, so that loss and penalty balance each other at the minimum
        of the objective. None if elements of a weight have separate rates.
        """
        return None

    def start(self) -> Any:
        """Return the memory before the first epoch; None if the rate does not depend on losses."""
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

    def init(self, weight: np.ndarray) -> dict[str, np.ndarray]:
        """Return the initial state of one weight.

        Parameters
        ----------
        weight : ndarray
            Initial value of the weight.

        Returns
        -------
        dict of str to ndarray
            State by name, of the weight's type; empty for an update without state.
        """
        return {}

    def update(
        self, op: GraphBuilder, weight: str, gradient: str, state: Mapping[str, str], rate: str
    ) -> tuple[str, dict[str, str]]:
        """Write the update of one weight.

        Parameters
        ----------
        op : GraphBuilder
            Builder of the graph.
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
        raise NotImplementedError(f"{type(self).__name__} has no update: implement update.")

    def graph_key(self) -> Hashable:
        """Return a key of the nodes that :meth:`update` writes; equal keys share compiled graphs."""
        return type(self), tuple(sorted((k, repr(v)) for k, v in self.get_params(deep=False).items()))
