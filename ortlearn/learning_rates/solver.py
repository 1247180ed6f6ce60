"""Base class of solvers that minimise the objective of all samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from .base import BaseLearningRate

__all__ = ["BaseSolver", "SolverObjective", "Solution"]


class SolverObjective(Protocol):
    """The objective of all samples with penalty, as a function of a float64 vector of all weights.

    The weights belong to standardised features if the model allows it.
    """

    @property
    def has_kinks(self) -> bool:
        """Whether the objective has kinks, as the absolute value at zero."""

    @property
    def lower(self) -> np.ndarray | None:
        """Lower bound of each weight, possibly minus infinity; None without bounds."""

    @property
    def absolute(self) -> np.ndarray | None:
        """Factors of absolute values, which are not part of the objective; None without absolute values."""

    @property
    def anchor(self) -> np.ndarray | None:
        """Weights at which absolute values are zero, such as the starting weights; None without any."""

    def __call__(self, weights: np.ndarray, /) -> tuple[float, np.ndarray]:
        """Return value and gradient, in float64."""

    def rounded(self, width: float) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return the objective with smoothed kinks: ``sqrt(r ** 2 + width ** 2)`` for ``|r|``."""


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    weights : ndarray of shape (n,), float64
        Last weights.
    converged : bool
        Whether the solver stopped because it converged.
    message : str
        Reason for stopping.
    """

    weights: np.ndarray
    converged: bool
    message: str


class BaseSolver(BaseLearningRate):
    """Base class of full-batch solvers, which replace schedule and update.

    A subclass stores its parameters in its constructor and writes :meth:`minimize`. ``batch_size``
    and ``shuffle`` of the estimator have no effect, ``max_iter`` counts iterations.

    Attributes
    ----------
    takes_absolute_values : bool
        Whether :meth:`minimize` adds ``objective.absolute @ |weights - objective.anchor|`` itself;
        otherwise penalties with absolute values raise an error.
    """

    full_batch: ClassVar[bool] = True
    takes_absolute_values: ClassVar[bool] = False

    def minimize(
        self,
        objective: SolverObjective,
        weights: np.ndarray,
        max_iter: int,
        note: Callable[[np.ndarray], None],
        precision: float,
    ) -> Solution:
        """Minimise the objective of all samples, penalty included.

        Parameters
        ----------
        objective : SolverObjective
            Function of weights, a vector in float64, that returns value and gradient; for kinks, see
            :class:`SolverObjective`.
        weights : ndarray of shape (n,), float64
            Starting weights.
        max_iter : int
            Maximum number of iterations.
        note : callable
            Function to call with the weights after each iteration.
        precision : float
            Relative rounding error of the objective: smaller differences are not significant.

        Returns
        -------
        Solution
            Result.
        """
        raise NotImplementedError(f"{type(self).__name__} does not minimise: implement minimize.")
