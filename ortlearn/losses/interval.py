"""Intervals of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Interval", "check_domain"]


@dataclass(frozen=True)
class Interval:
    """An interval of numbers; ``str`` returns it in mathematical notation, such as ``[0, inf)``.

    Parameters
    ----------
    low, high : float
        Bounds.
    low_inclusive, high_inclusive : bool, default=False
        Whether the bounds belong to the interval.

    Examples
    --------
    >>> from ortlearn.losses import Interval
    >>> counts = Interval(0, float("inf"), low_inclusive=True)
    >>> print(counts)
    [0, inf)
    >>> counts.contains([-1.0, 0.0, 2.5]).tolist()
    [False, True, True]
    """

    low: float = -np.inf
    high: float = np.inf
    low_inclusive: bool = False
    high_inclusive: bool = False

    def contains(self, values: Any) -> np.ndarray:
        """Return whether each value belongs to the interval.

        Parameters
        ----------
        values : array-like of float
            Values.

        Returns
        -------
        ndarray of bool
            The same shape; False for NaN.
        """
        values = np.asarray(values)
        above = values >= self.low if self.low_inclusive else values > self.low
        below = values <= self.high if self.high_inclusive else values < self.high
        return above & below

    def __str__(self) -> str:
        brackets = "[" if self.low_inclusive else "(", "]" if self.high_inclusive else ")"
        return f"{brackets[0]}{self.low:g}, {self.high:g}{brackets[1]}"


def check_domain(loss: Any, labels: np.ndarray) -> None:
    """Raise an error if labels are not in the domain of a loss."""
    inside = loss.domain.contains(labels)
    if not inside.all():
        raise ValueError(
            f"y has values outside of {loss.domain}, such as {labels[~inside][0]:g}, which "
            f"{type(loss).__name__} does not support: choose another loss, or transform y."
        )
