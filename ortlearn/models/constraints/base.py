"""Base class of constraints."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ...graphs import GraphBuilder


class Constraint(ABC):
    """A set of arrays, as a function of unconstrained ("free") values, which are trained instead."""

    #: Name of the set in tables, ``"kept positive"``.
    text: str
    #: Whether nonnegative free values reach every array of the set: updates are then projected onto them.
    projected: ClassVar[bool] = False
    #: Whether free values have the magnitude of the parameter, so that penalties apply to them.
    penalised: ClassVar[bool] = False
    #: Whether each row of the parameter depends on the same row of the free values only.
    by_row: ClassVar[bool] = False

    @abstractmethod
    def holds(self, values: np.ndarray) -> bool:
        """Return whether an array is in the set or on its boundary."""

    @abstractmethod
    def free(self, values: np.ndarray) -> np.ndarray:
        """Return the free values of an array in the set."""

    @abstractmethod
    def values(self, free: np.ndarray) -> np.ndarray:
        """Return the array of free values."""

    @abstractmethod
    def write(self, op: GraphBuilder, free: str) -> str:
        """Append the nodes that compute the array of free values, and return its name."""
