"""What every contender offers."""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Case, Weights

__all__ = ["Contender"]


class Contender:
    """Trains one case.

    Parameters
    ----------
    case : Case
        What is trained.
    X, y : ndarray
        Data, float32 and float32 or int64.
    threads : int
        Threads it may use.
    """

    #: Whether its updates are those of every other contender; otherwise its loss is its own.
    same_updates = True

    def __init__(self, case: Case, X: np.ndarray, y: np.ndarray, threads: int):
        self.case, self.X, self.y, self.threads = case, X, y, threads
        self.setup()

    @staticmethod
    def supports(case: Case) -> bool:
        """Tell whether it can train a case."""
        return True

    def setup(self) -> None:
        """Do what comes before ``fit`` and is not timed."""

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train from the initial weights, on numpy arrays, and return weights as numpy arrays."""
        raise NotImplementedError

    def default_fit(self) -> Weights:
        """Train as the library's own estimator does by default, until it stops itself."""
        raise NotImplementedError
