"""Base class of constraints."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ...graphs import GraphBuilder


class Constraint(ABC):
    """A set of arrays, and a way to reach every one of them from free numbers.

    A variance is ``exp(t)``, weights of a mixture are ``exp(t) / sum exp(t)``, and so on: whatever ``t`` an
    update gives, the parameter stays what it has to be. The graph that is trained has ``t`` as its
    initializer; the graph that is given back has the parameter.
    """

    #: Name of the set in tables, ``"kept positive"``.
    text: str
    #: Whether free numbers that are not negative reach the whole set: training then keeps to these.
    projected: ClassVar[bool] = False
    #: Whether the size of a free number is that of the parameter, so that penalties mean the same.
    penalised: ClassVar[bool] = False
    #: Whether a row of the parameter depends on that row of the free numbers alone.
    by_row: ClassVar[bool] = False

    @abstractmethod
    def holds(self, values: np.ndarray) -> bool:
        """Return whether an array is in the set, its edge included."""

    @abstractmethod
    def free(self, values: np.ndarray) -> np.ndarray:
        """Return free numbers that give an array of the set."""

    @abstractmethod
    def values(self, free: np.ndarray) -> np.ndarray:
        """Return the array that free numbers give."""

    @abstractmethod
    def write(self, op: GraphBuilder, free: str) -> str:
        """Append the nodes that compute it, and return its name."""
