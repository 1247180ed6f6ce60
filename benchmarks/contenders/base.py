"""Base class of contenders."""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Case, Weights

__all__ = ["Contender"]


class Contender:
    """Trains one case.

    Parameters
    ----------
    case : Case
        Network and data.
    X, y : ndarray
        Data, float32 and float32 or int64.
    threads : int
        Threads it may use.
    """

    #: Whether it makes the same updates as the other contenders, so that losses agree.
    same_updates = True

    def __init__(self, case: Case, X: np.ndarray, y: np.ndarray, threads: int):
        self.case, self.X, self.y, self.threads = case, X, y, threads
        self.setup()

    @staticmethod
    def supports(case: Case) -> bool:
        """Return whether the contender can train a case."""
        return True

    def setup(self) -> None:
        """Prepare ``fit``; this is not timed."""

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train from the initial weights, on numpy arrays, and return weights as numpy arrays."""
        raise NotImplementedError

    def default_fit(self) -> Weights:
        """Train as the library's own estimator does by default, until it stops itself."""
        raise NotImplementedError
