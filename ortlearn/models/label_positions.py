"""Array-valued labels of samples: one for each pixel, time step or element."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Positions:
    """Shape of the labels of a sample.

    Attributes
    ----------
    shape : tuple of int or None
        Shape of the labels of a sample; None for sizes that depend on X.
    class_axis : int or None
        Axis of the classes in the decisions and probabilities of a classifier; None if these have the shape
        of the labels.
    per_position : bool
        Whether each position, rather than each sample, has a loss and a sample weight.
    """

    shape: tuple[int | None, ...]
    class_axis: int | None = None
    per_position: bool = True

    @property
    def count(self) -> int | None:
        """Number of positions; None if it depends on X."""
        known = [size for size in self.shape if size is not None]
        return math.prod(known) if len(known) == len(self.shape) else None

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether labels may have a shape, ignoring axes of size one."""
        given = tuple(shape[1:])
        return _agree(self.shape, given) or _agree(_without_ones(self.shape), _without_ones(given))

    def labels_like(self, values: np.ndarray, ndim: int) -> np.ndarray:
        """Return predictions with ``ndim`` dimensions if adding or removing axes of size one suffices."""
        if values.ndim == ndim:
            return values
        if values.ndim + 1 == ndim:
            return np.expand_dims(values, -1 if self.class_axis is None else self.class_axis)
        shape = (len(values), *(size for size in values.shape[1:] if size != 1))
        return values.reshape(shape) if len(shape) == ndim else values


def _without_ones(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    return tuple(size for size in shape if size != 1)


def _agree(known: tuple[int | None, ...], given: tuple[int | None, ...]) -> bool:
    pairs = zip(known, given, strict=False)
    return len(known) == len(given) and all(expected in (None, size) for expected, size in pairs)
