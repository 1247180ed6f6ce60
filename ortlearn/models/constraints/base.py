"""Base class of constraints."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ...graphs import GraphBuilder


class Constraint(ABC):
    """A set of arrays, each a function of unconstrained ("free") numbers, which are trained instead."""

    #: Name of the set in tables, ``"kept positive"``.
    text: str
    #: Whether nonnegative free numbers reach the whole set: training then projects updates onto them.
    projected: ClassVar[bool] = False
    #: Whether free numbers have the magnitude of the parameter, so that penalties mean the same.
    penalised: ClassVar[bool] = False
    #: Whether a row of the parameter depends on the same row of the free numbers only.
    by_row: ClassVar[bool] = False

    @abstractmethod
    def holds(self, values: np.ndarray) -> bool:
        """Return whether an array is in the set or on its boundary."""

    @abstractmethod
    def free(self, values: np.ndarray) -> np.ndarray:
        """Return the free numbers of an array in the set."""

    @abstractmethod
    def values(self, free: np.ndarray) -> np.ndarray:
        """Return the array of free numbers."""

    @abstractmethod
    def write(self, op: GraphBuilder, free: str) -> str:
        """Append the nodes that compute the array of free numbers, and return its name."""
