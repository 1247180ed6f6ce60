"""Arithmetic on shapes with named and unknown dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["broadcast_shapes", "count", "is_static", "reduced_axes", "same_shape", "shape_template"]

Dim = int | str | None
Shape = tuple[Dim, ...]


def is_static(shape: Shape | None) -> bool:
    """Return whether every dimension is a number."""
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def same_shape(left: Shape | None, right: Shape | None) -> bool:
    """Return whether two shapes are known to be equal; dimensions with the same name are equal."""
    return left is not None and left == right and None not in left


def count(shape: Shape | None, axes: Sequence[int] | None = None) -> int | None:
    """Return the number of elements along axes (all by default), or None if it is unknown."""
    if shape is None:
        return None
    dims = shape if axes is None else [shape[axis] for axis in axes]
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(numbers) if len(numbers) == len(dims) else None


def broadcast_shapes(shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the broadcast shape of tensors, as far as it is known."""
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes):
        return None
    rank = max(len(shape) for shape in known)
    columns = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in known), strict=True)
    return tuple(_broadcast_dim(set(dims) - {1}) for dims in columns)


def _broadcast_dim(dims: set[Dim]) -> Dim:
    if not dims:
        return 1
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if numbers:
        return numbers[0]  # the others are equal to it or one
    return dims.pop() if len(dims) == 1 else None


def reduced_axes(source: Shape | None, target: Shape | None) -> list[int] | None:
    """Return the axes along which a sum undoes a broadcast, or None if they depend on the data."""
    if source is None or target is None or len(target) > len(source):
        return None
    missing = len(source) - len(target)
    axes = list(range(missing))
    for axis, dim in enumerate(target, start=missing):
        if dim == 1:
            if source[axis] != 1:
                axes.append(axis)
        elif not isinstance(dim, int) and (dim is None or dim != source[axis]):
            return None
    return axes


def shape_template(shape: Shape | None) -> list[int] | None:
    """Return the shape for Reshape, with -1 for an unknown dimension, or None if it has several."""
    if shape is None or 0 in shape:
        return None
    template = [dim if isinstance(dim, int) else -1 for dim in shape]
    return template if template.count(-1) <= 1 else None
