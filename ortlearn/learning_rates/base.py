"""Base class of learning rates: a schedule and an update rule, independent of each other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np

from ..graphs import GraphBuilder
from ..parameters import CheckedParameters

__all__ = ["BaseLearningRate"]


class BaseLearningRate(CheckedParameters):
    """Base class of learning rates.

    A subclass stores its parameters in its constructor, gives the rate of an epoch
    (:meth:`rate`), and writes how a weight is updated (:meth:`init` and :meth:`update`).
    :class:`ScheduledLearningRate` has a schedule already, :class:`BaseSolver` trains on all rows at
    once instead.

    Attributes
    ----------
    scales_gradient : bool
        Whether :meth:`update` uses the rate only as a factor of the gradient. The rate is then
        multiplied into the gradient of the loss, once for all weights.
    elementwise : bool
        Whether :meth:`update` treats each element of a weight by itself, with states of the weight's
        shape or of one number. All weights may then be updated as one vector.
    full_batch : bool
        Whether this is a solver.
    """

    scales_gradient: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False
    full_batch: ClassVar[bool] = False

    def rate(self, epoch: int, memory: Any = None) -> float:
        """Return the learning rate of an epoch.

        Parameters
        ----------
        epoch : int
            Number of the epoch, from 0.
        memory : object, default=None
            What is remembered of the losses so far; never given where :meth:`start` returns None.

        Returns
        -------
        float
            Rate, above 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must define its schedule.")

    def for_epochs(self, n_epochs: int) -> BaseLearningRate:
        """Return the learning rate of a training of so many epochs.

        Parameters
        ----------
        n_epochs : int
            Number of epochs, 1 or more.

        Returns
        -------
        BaseLearningRate
            This object where its schedule does not depend on that number, as here, else another one.
        """
        return self

    @property
    def proximal_scale(self) -> float | None:
        """How far a gradient that stays the same moves a weight, in rates per update.

        It is the length of the proximal step of a penalty, so that both balance each other where the
        objective has its minimum. None where elements of a weight move at rates of their own.
        """
        return None

    def start(self) -> Any:
        """Return what is remembered before the first epoch; None where losses do not matter."""
        return None

    def remember(self, memory: Any, loss: float) -> Any:
        """Return what is remembered once an epoch has ended with a mean training loss.

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
        """Return what the nodes of :meth:`update` depend on; equal keys share compiled graphs.

        Returns
        -------
        hashable
            Type and parameters; parameters that no node depends on may be left out.
        """
        return type(self), tuple(sorted((k, repr(v)) for k, v in self.get_params(deep=False).items()))
