"""Which number of which attribute makes each number of an initializer: found by converting twice.

Every number of the attributes is moved by a share of its own. What an initializer was before and is
after tells the number it comes from, and what the converter did with it, whatever the order, the padding
and the stacking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

__all__ = ["Correspondence", "correspondence", "in_order", "moved"]

#: What converters make of a number, and the way back given the number before (for its sign).
WAYS: dict[str, tuple[Callable, Callable]] = {
    "identity": (lambda a: a, lambda w, a: w),
    "log": (np.log, lambda w, a: np.exp(w)),
    "reciprocal": (lambda a: 1 / a, lambda w, a: 1 / w),
    "square": (np.square, lambda w, a: np.sqrt(np.maximum(w, 0)) * np.where(a < 0, -1, 1)),
    "sqrt": (np.sqrt, lambda w, a: np.square(w)),
    "exp": (np.exp, lambda w, a: np.log(w)),
    "reciprocal sqrt": (lambda a: 1 / np.sqrt(a), lambda w, a: 1 / np.square(w)),
}
#: Shares by which numbers are moved lie between these.
SHARES = (0.05, 1.0)
#: Rounding of a converter, relative.
TOLERANCE = 1e-5
#: Stands for zero where logarithms are taken.
TINY = 1e-30


@dataclass(frozen=True)
class Correspondence:
    """The numbers that an initializer is made of.

    Attributes
    ----------
    source : ndarray of int of shape (n,)
        Number of the number of the attributes that each element comes from; -1 for constants.
    way : str
        What the converter did with it, one of ``WAYS``.
    factor : ndarray of float64 of shape (n,)
        What it then multiplied by: a sign, or a scale.
    """

    source: np.ndarray
    way: str
    factor: np.ndarray

    def back(self, values: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return the numbers of attributes that give new elements.

        Parameters
        ----------
        values : ndarray of shape (n,)
            New elements.
        before : ndarray of shape (m,)
            Numbers of the attributes as they are.

        Returns
        -------
        ndarray of shape (n,)
            Numbers for ``source``, nan where that is -1.
        """
        old = before[np.maximum(self.source, 0)]
        with np.errstate(all="ignore"):
            found = WAYS[self.way][1](values.astype(np.float64) / self.factor, old)
        return np.where(self.source >= 0, found, np.nan)

    def forward(self, numbers: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return the elements that numbers of attributes give.

        Parameters
        ----------
        numbers : ndarray of shape (m,)
            Numbers of the attributes.
        before : ndarray
            The elements before, for those that come from no number.

        Returns
        -------
        ndarray
            Elements, in the shape of ``before``.
        """
        with np.errstate(all="ignore"):
            found = WAYS[self.way][0](numbers[np.maximum(self.source, 0)]) * self.factor
        return np.where(self.source >= 0, found, before.ravel()).reshape(before.shape)


def moved(values: np.ndarray, random_state: np.random.RandomState) -> np.ndarray:
    """Return numbers that are all moved by different shares, signs kept; zeros become small numbers.

    Parameters
    ----------
    values : ndarray
        Numbers.
    random_state : numpy.random.RandomState
        Source of the order of the shares.

    Returns
    -------
    ndarray
        Others, of the same shape.
    """
    low, high = SHARES
    ranks = (random_state.permutation(values.size) + random_state.uniform()) / values.size
    # Not evenly: the mean of two shares, which a sum of three may keep where it is, is no third one.
    shares = (low * (high / low) ** ranks).reshape(values.shape)
    return np.where(values == 0, shares, values * (1 + shares))


def in_order(
    before: Sequence[np.ndarray],
    first: np.ndarray,
    after: Sequence[np.ndarray] | None = None,
    second: np.ndarray | None = None,
) -> Correspondence | None:
    """Find out whether an initializer holds the numbers of some arrays in their order, or transposed.

    Parameters
    ----------
    before : sequence of ndarray
        Arrays.
    first : ndarray
        Initializer.
    after, second : default=None
        The same once more, of other numbers, where these are known.

    Returns
    -------
    Correspondence or None
        None where it does not.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.conversion.write_back.correspondence import in_order
    >>> found = in_order([np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])], np.array([[1, 4], [2, 5], [3, 6]]))
    >>> found.source, found.way
    (array([0, 3, 1, 4, 2, 5]), 'identity')
    """
    pairs = [(_joined(before), first.ravel().astype(np.float64))]
    if after is not None and second is not None:
        pairs.append((_joined(after), second.ravel().astype(np.float64)))
    for source in _orders(before, first.size):
        for way, (forward, _) in WAYS.items():
            with np.errstate(all="ignore"):
                made = [forward(numbers[source]) for numbers, _ in pairs]
            factor = _common_factor(made[-1], pairs[-1][1])
            if way != "identity" and abs(factor) != 1:
                continue
            if all(_is_same(own * factor, kept) for own, (_, kept) in zip(made, pairs, strict=True)):
                return Correspondence(source, way, np.full(first.size, factor))
    return None


def _orders(arrays: Sequence[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """Yield the orders in which converters store all numbers, or those of the second of two classes."""
    ends = np.cumsum([array.size for array in arrays])
    numbers = [
        np.arange(end - array.size, end).reshape(array.shape) for end, array in zip(ends, arrays, strict=True)
    ]
    orders = [numbers, [own.T for own in numbers], [own[..., 1:] for own in numbers if own.ndim == 3]]
    for order in orders:
        if sum(own.size for own in order) == size:
            yield np.concatenate([own.ravel() for own in order])


def _common_factor(numbers: np.ndarray, kept: np.ndarray) -> float:
    """Return what the largest number was multiplied by, 1 or -1 where it was by nothing else."""
    largest = int(np.argmax(np.where(np.isfinite(numbers), np.abs(numbers), -1)))
    with np.errstate(all="ignore"):
        factor = float(kept[largest] / numbers[largest])
    if not np.isfinite(factor) or factor == 0:
        return 1.0
    return float(np.sign(factor)) if abs(abs(factor) - 1) <= TOLERANCE else factor


def _is_same(numbers: np.ndarray, kept: np.ndarray) -> bool:
    return np.allclose(numbers, kept, rtol=TOLERANCE, atol=TINY, equal_nan=True)


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(array).astype(np.float64) for array in arrays])


def correspondence(
    before: np.ndarray, after: np.ndarray, first: np.ndarray, second: np.ndarray
) -> Correspondence | None:
    """Find where the elements of an initializer come from.

    Parameters
    ----------
    before, after : ndarray of shape (m,)
        Numbers of attributes, as they are and moved.
    first, second : ndarray of shape (n,)
        The initializer converted from these and from those.

    Returns
    -------
    Correspondence or None
        None where some elements that move come from no number.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.conversion.write_back.correspondence import correspondence
    >>> before, after = np.array([2.0, 5.0]), np.array([2.1, 5.5])
    >>> found = correspondence(before, after, -np.log(before[[1, 0, 1]]), -np.log(after[[1, 0, 1]]))
    >>> found.source, found.way, found.factor
    (array([1, 0, 1]), 'log', array([-1., -1., -1.]))
    """
    before, after, first, second = (np.ravel(a).astype(np.float64) for a in (before, after, first, second))
    changed = (first != second) & ~(np.isnan(first) & np.isnan(second))
    if not changed.any():
        return None
    for way, (forward, _) in WAYS.items():
        with np.errstate(all="ignore"):
            old, new = forward(before), forward(after)
        scales = _scales(old, new, first[changed], second[changed]) if way == "identity" else (1.0,)
        for scale in scales:
            found = _nearest(old * scale, new * scale, first[changed], second[changed])
            if found is not None:
                signs = np.sign(second[changed]) * np.sign(new[found])
                return _whole(changed, found, way, signs * scale)
    return None


def _scales(old: np.ndarray, new: np.ndarray, first: np.ndarray, second: np.ndarray) -> Sequence[float]:
    """Return the factors that all numbers may have been multiplied by: none, or one.

    By how much an element has grown tells where it comes from, whatever the factor.
    """
    with np.errstate(all="ignore"):
        growth, own = new / old, second / first
    known, told = np.flatnonzero(np.isfinite(growth)), np.isfinite(own)
    if not len(known) or not told.any():
        return (1.0,)
    order = known[np.argsort(growth[known])]
    right = np.clip(np.searchsorted(growth[order], own[told]), 1, max(len(order) - 1, 1))
    pair = order[np.minimum(np.stack([right - 1, right]), len(order) - 1)]
    nearest = np.take_along_axis(pair, np.abs(growth[pair] - own[told]).argmin(axis=0)[None], axis=0)[0]
    return (1.0, float(np.median(np.abs(second[told] / new[nearest]))))


def _whole(changed: np.ndarray, found: np.ndarray, way: str, factors: np.ndarray) -> Correspondence:
    source = np.full(changed.shape, -1)
    factor = np.ones(changed.shape)
    source[changed], factor[changed] = found, factors
    return Correspondence(source, way, factor)


def _nearest(old: np.ndarray, new: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray | None:
    """Return the numbers whose pair of sizes is that of each element, None if some have none."""
    known = np.isfinite(old) & np.isfinite(new)
    if not known.any():
        return None
    tree = cKDTree(_sizes(old[known], new[known]))
    distance, number = tree.query(_sizes(first, second), p=np.inf)
    if (distance > 2 * TOLERANCE).any():
        return None
    return np.flatnonzero(known)[number]


def _sizes(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(np.abs(np.stack([old, new], axis=1)), TINY))
