"""Base class of constraints."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ...graphs import GraphBuilder


class Constraint(ABC):
    """A set of arrays, parametrised by unconstrained ("free") values, which are trained instead."""

    #: Description of the set in reports, such as ``"kept positive"``.
    text: str
    #: Whether nonnegative free values suffice to represent the set: updates are then projected onto them.
    projected: ClassVar[bool] = False
    #: Whether free values equal the parameter in magnitude, so that penalties are unchanged.
    penalised: ClassVar[bool] = False
    #: Whether each row of the parameter depends only on the same row of the free values.
    by_row: ClassVar[bool] = False

    @abstractmethod
    def holds(self, values: np.ndarray) -> bool:
        """Return whether an array is in the set or on its boundary."""

    @abstractmethod
    def free(self, values: np.ndarray) -> np.ndarray:
        """Return the free values of an array in the set."""

    @abstractmethod
    def values(self, free: np.ndarray) -> np.ndarray:
        """Return the array in the set for free values."""

    @abstractmethod
    def write(self, op: GraphBuilder, free: str) -> str:
        """Append the nodes that compute the array from free values, and return its name."""
