"""Which of many arrays holds given numbers, as float32 rounds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

__all__ = ["NumberIndex", "evidence", "within"]

#: Converters round to float32, sometimes after a computation in it.
TOLERANCE = 1e-5
#: Values that are looked up first.
N_PROBES = 5


def within(values: np.ndarray, expected: np.ndarray) -> bool:
    """Tell whether two arrays are equal but for the rounding of a converter.

    Parameters
    ----------
    values, expected : ndarray of shape (n,)
        Numbers.

    Returns
    -------
    bool
        Whether they are.
    """
    if values.shape != expected.shape or not _near(values[:1], expected[:1]).all():
        return False
    return bool(_near(values, expected).all())


def _near(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.abs(values - expected) <= TOLERANCE * np.abs(expected) + 1e-30


def evidence(array: np.ndarray) -> int:
    """Return how much it proves to find these numbers somewhere.

    A number of many digits counts 4, one of few digits (0.25, 1.7) counts 1, a multiple of a half
    nothing; each counts once.

    Parameters
    ----------
    array : ndarray
        Numbers.

    Returns
    -------
    int
        Sum over the first hundred distinct numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.conversion.weights.number_index import evidence
    >>> [evidence(np.array(x)) for x in ([0.0, 1.0, 2.0], [0.25, 0.25, 1.75], [0.31831])]
    [0, 2, 4]
    """
    numbers = np.unique(np.abs(array.ravel()[:1000]).astype(np.float64))[:100]
    numbers = numbers[np.isfinite(numbers) & (numbers > 1e-12)]
    halves = _is_round(2 * numbers)
    short = _is_round(1000 * numbers) & ~halves
    return int(short.sum() + 4 * (~halves & ~short).sum())


def _is_round(numbers: np.ndarray) -> np.ndarray:
    """Tell which float32 numbers are integers, or the nearest to one."""
    return np.abs(numbers - np.round(numbers)) <= np.finfo(np.float32).eps * numbers


class NumberIndex:
    """Absolute values of several arrays, sorted together.

    Parameters
    ----------
    arrays : mapping of int to ndarray
        Arrays by number.
    """

    def __init__(self, arrays: Mapping[int, np.ndarray]):
        self.members = list(arrays)
        values = [np.abs(np.ravel(array)).astype(np.float64) for array in arrays.values()]
        numbers = np.concatenate(values) if values else np.zeros(0)
        owners = np.repeat(self.members, [len(v) for v in values]).astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        self._numbers, self._owners = numbers[order], owners[order]

    def holders(self, array: np.ndarray) -> list[int]:
        """Return the arrays that have all the numbers of another, zeros and signs left aside."""
        wanted = _distinct(array)
        if not len(wanted):
            return []
        probes = wanted[np.linspace(0, len(wanted) - 1, min(N_PROBES, len(wanted))).astype(int)]
        common: set[int] | None = None
        for probe in probes:
            owners = set(self._owners[self._around(probe)].tolist())
            common = owners if common is None else common & owners
            if not common:
                return []
        return [member for member in sorted(common or ()) if self.hold_together([member], array)]

    def hold_together(self, members: Iterable[int], array: np.ndarray) -> bool:
        """Tell whether some arrays together have all the numbers of another."""
        numbers = self._numbers[np.isin(self._owners, list(members))]
        wanted = _distinct(array)
        if not len(numbers) or not len(wanted):
            return False
        right = np.clip(np.searchsorted(numbers, wanted), 1, len(numbers)) - 1
        near = _near(numbers[right], wanted)
        near |= _near(numbers[np.minimum(right + 1, len(numbers) - 1)], wanted)
        return bool(near.all())

    def _around(self, number: float) -> slice:
        low, high = number * (1 - TOLERANCE), number * (1 + TOLERANCE)
        return slice(np.searchsorted(self._numbers, low), np.searchsorted(self._numbers, high, side="right"))


def _distinct(array: np.ndarray) -> np.ndarray:
    """Return the distinct absolute values, but zero: converters pad with it."""
    numbers = np.unique(np.abs(array).astype(np.float64))
    return numbers[numbers > 0]
