"""Base class of solvers that minimise the objective of all samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from .base import BaseLearningRate

__all__ = ["BaseSolver", "Objective", "Solution"]


class Objective(Protocol):
    """The objective of all rows, penalty included, of all weights as one vector in float64.

    The vector is in coordinates in which features are standardised, where that is possible.
    """

    @property
    def has_kinks(self) -> bool:
        """Whether it has no gradient at some places, as the absolute value at zero."""

    @property
    def lower(self) -> np.ndarray | None:
        """Lower bound of each weight, minus infinity for none; None where no weight has one."""

    @property
    def absolute(self) -> np.ndarray | None:
        """Factor of the absolute value of each weight, which the value leaves out; None without any."""

    @property
    def anchor(self) -> np.ndarray | None:
        """From where these absolute values are taken: zero, or the start; None without any."""

    def __call__(self, weights: np.ndarray, /) -> tuple[float, np.ndarray]:
        """Return its value and its gradient, in float64."""

    def rounded(self, width: float) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return the same with rounded kinks: ``sqrt(r ** 2 + width ** 2)`` for ``|r|``."""


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    weights : ndarray of shape (n,), float64
        Last weights.
    converged : bool
        Whether it stopped because there was nothing more to gain.
    message : str
        Why it stopped.
    """

    weights: np.ndarray
    converged: bool
    message: str


class BaseSolver(BaseLearningRate):
    """Base class of full-batch solvers, which take the place of a schedule and an update.

    A subclass stores its parameters in its constructor and writes :meth:`minimize`. ``batch_size``
    and ``shuffle`` of the estimator have no effect, ``max_iter`` counts iterations.

    Attributes
    ----------
    takes_absolute_values : bool
        Whether :meth:`minimize` adds ``objective.absolute @ |weights - objective.anchor|`` itself;
        otherwise penalties with absolute values are refused.
    """

    full_batch: ClassVar[bool] = True
    takes_absolute_values: ClassVar[bool] = False

    def minimize(
        self,
        objective: Objective,
        weights: np.ndarray,
        max_iter: int,
        note: Callable[[np.ndarray], None],
        precision: float,
    ) -> Solution:
        """Minimise the objective of all rows, penalty included.

        Parameters
        ----------
        objective : Objective
            Called with weights, a vector in float64, it returns its value and its gradient; see
            :class:`Objective` for what to do about kinks.
        weights : ndarray of shape (n,), float64
            Where to start.
        max_iter : int
            Most iterations.
        note : callable
            To call with the weights after each iteration.
        precision : float
            Relative rounding error of the objective: smaller differences mean nothing.

        Returns
        -------
        Solution
            What was found.
        """
        raise NotImplementedError(f"{type(self).__name__} must minimise.")
