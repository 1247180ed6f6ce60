"""What every solver is: a way to minimise an objective of all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import BaseLearningRate

__all__ = ["BaseSolver", "Solution"]

#: From a vector of weights to the objective and its gradient.
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


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
    """

    full_batch: ClassVar[bool] = True

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
        objective : callable
            From weights, a vector in float64, to the objective and its gradient, in float64.
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
