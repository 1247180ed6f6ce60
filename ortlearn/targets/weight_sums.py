"""Sums of sample weights, bitwise equal for all samples at once and for blocks of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .label_arrays import dense_labels, indices_of, per_position

__all__ = ["BLOCK", "LabelSums", "scale_of", "sum_of", "sums_of_labels"]

#: Number of weights that are added at once.
BLOCK = 65_536


def sum_of(weights: np.ndarray) -> float:
    """Return the sum of sample weights, computed by blocks; positions of a sample are averaged."""
    unit = scale_of(float(weights.max(initial=0.0)))  # the sum of divided weights cannot overflow
    sums = (float((weights[i : i + BLOCK] / unit).sum()) for i in range(0, len(weights), BLOCK))
    return math.fsum(sums) / math.prod(weights.shape[1:]) * unit


def scale_of(largest: float | None) -> float:
    """Return a power of two close to the largest weight, by which division is exact; 1 for None and zero."""
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def sums_of_labels(y: Any, weights: np.ndarray | None, flat: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted labels of y, and the sum of the weights of each.

    If y has several columns, a label is a row of y; with ``flat``, each element is a label.
    """
    sums = LabelSums(flat)
    sums.add(y, weights)
    return sums.result()


class LabelSums:
    """Sums of the weights of each label; with ``flat``, each element of y is a label."""

    def __init__(self, flat: bool = False) -> None:
        self._flat = flat
        self._sums: dict[Any, float] = {}
        self._empty: np.ndarray | None = None  # has the type and the columns of the labels

    def add(self, y: Any, weights: np.ndarray | None) -> None:
        """Add some samples."""
        values = dense_labels(y)
        if self._flat and values.ndim > 1:
            weights = np.ones(len(values)) if weights is None else weights
            weights = per_position(weights, values.shape).ravel() / math.prod(values.shape[1:])
            values = values.ravel()
        values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        self._empty = values[:0] if self._empty is None else np.concatenate([self._empty, values[:0]])
        found: Any
        if values.ndim == 1 and values.dtype == object:
            known = sorted(set(values.tolist()))  # the error of numpy.unique if labels cannot be compared
            found = np.empty(len(known), dtype=object)
            found[:] = known
            numbers = indices_of(values, found)
        elif values.ndim == 2 and values.dtype == object:  # numpy.unique does not support rows of objects
            found = np.empty(len(values), dtype=object)
            found[:] = list(map(tuple, values.tolist()))
            found, numbers = np.unique(found, return_inverse=True)
        else:
            found, numbers = np.unique(values, axis=0 if values.ndim == 2 else None, return_inverse=True)
        labels = list(map(tuple, found.tolist()) if found.ndim == 2 else found.tolist())
        sums = np.array([self._sums.get(label, 0.0) for label in labels])
        if weights is None:
            sums += np.bincount(numbers.ravel(), minlength=len(labels))
        else:  # earlier samples are added first
            numbers = np.concatenate([np.arange(len(labels)), numbers.ravel()])
            sums = np.bincount(numbers, np.concatenate([sums, weights]))
        self._sums.update(zip(labels, sums.tolist(), strict=True))

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels, sorted, and their sums."""
        assert self._empty is not None
        labels = sorted(self._sums)
        array = np.empty((len(labels), *self._empty.shape[1:]), dtype=self._empty.dtype)
        array[...] = np.array(labels, dtype=self._empty.dtype).reshape(array.shape)
        return array, np.array([self._sums[label] for label in labels])
