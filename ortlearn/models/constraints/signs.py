"""Constraints on the sign of a parameter."""

from dataclasses import dataclass

import numpy as np

from ...graphs import GraphBuilder
from .base import Constraint

__all__ = ["NotNegative", "Positive"]


@dataclass(frozen=True)
class Positive(Constraint):
    """Positive or, with ``sign=-1``, negative values: ``sign exp(t)``, as of variances and scales.

    With an upper bound of the magnitude, ``high``, the values are ``sign high / (1 + exp(-t))``.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.models.constraints.signs import Positive
    >>> Positive().free(np.array([1.0, np.e]))
    array([0., 1.])
    """

    sign: int = 1
    high: float | None = None

    @property
    def text(self) -> str:  # type: ignore[override]
        return "kept positive" if self.sign > 0 else "kept negative"

    def holds(self, values: np.ndarray) -> bool:
        sizes = self.sign * values
        return bool((sizes > 0).all() and (self.high is None or (sizes < self.high).all()))

    def free(self, values: np.ndarray) -> np.ndarray:
        sizes = self.sign * values
        return np.log(sizes) if self.high is None else np.log(sizes / (self.high - sizes))

    def values(self, free: np.ndarray) -> np.ndarray:
        sizes = np.exp(free) if self.high is None else self.high / (1 + np.exp(-free))
        return self.sign * sizes

    def write(self, op: GraphBuilder, free: str) -> str:
        if self.high is None:
            result = op.Exp(free)
        else:
            result = op.Div(self.high, op.Add(op.Exp(op.Neg(free)), 1.0))
        return result if self.sign > 0 else op.Neg(result)


def absolute(op: GraphBuilder, free: str) -> str:
    """Return absolute values with a slope of 1 at zero, where Abs has a slope of 0."""
    return op.Where(op.Less(free, 0.0), op.Neg(free), free)


@dataclass(frozen=True)
class NotNegative(Constraint):
    """Nonnegative coefficients ``|t|``, with a slope of 1 at ``t = 0``.

    The slope lets a coefficient of zero increase if this reduces the loss. Updates project free values onto
    nonnegative ones (Bertsekas, D. P., "On the Goldstein-Levitin-Polyak gradient projection method", IEEE
    Transactions on Automatic Control 21 (1976), 174-184), so that zeros are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.models.constraints.signs import NotNegative
    >>> NotNegative().values(np.array([0.0, -2.0]))
    array([0., 2.])
    """

    text = "kept at 0 or above"
    projected = True
    penalised = True

    def holds(self, values: np.ndarray) -> bool:
        return bool((values >= 0).all())

    def free(self, values: np.ndarray) -> np.ndarray:
        return np.abs(values)

    def values(self, free: np.ndarray) -> np.ndarray:
        return np.abs(free)

    def write(self, op: GraphBuilder, free: str) -> str:
        return absolute(op, free)
