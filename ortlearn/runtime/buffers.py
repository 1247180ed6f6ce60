"""Tensors that are allocated once per training, and their samples."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .devices import Device, ort_value

__all__ = [
    "BatchBuffer",
    "Carried",
    "CarriedBuffers",
    "sample_bytes",
    "take_samples",
]


class BatchBuffer:
    """A tensor on a device for the samples of a batch, reused for all batches."""

    def __init__(self, like: np.ndarray, size: int, device: Device):
        self._staging = np.empty((size, *like.shape[1:]), dtype=like.dtype)
        self.value = ort_value(self._staging, device)
        self._shared = device.is_cpu

    def load(self, array: np.ndarray, samples: np.ndarray) -> None:
        """Copy samples of an array, or of a sparse matrix, into the tensor."""
        take_samples(array, samples, self._staging)
        if not self._shared:
            self.value.update_inplace(self._staging)


def sample_bytes(arrays: Iterable[Any]) -> int:
    """Return the bytes of a sample of arrays or sparse matrices, in dense form."""
    return sum(math.prod(array.shape[1:]) * array.dtype.itemsize for array in arrays)


def dense_samples(part: Any) -> np.ndarray:
    """Return an array or a sparse matrix as a C-contiguous array, which may share memory."""
    return part.toarray() if issparse(part) else np.ascontiguousarray(part)


def take_samples(array: Any, samples: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return samples of an array or of a sparse matrix, as a C-contiguous array."""
    if issparse(array):
        return array[samples].toarray(order="C" if out is None else None, out=out)
    return np.take(array, samples, axis=0, out=out, mode="clip")  # other modes buffer the output


@dataclass(frozen=True)
class Carried:
    """A weight, or a state of it, that a graph reads as ``source`` and writes as ``result``."""

    weight: str
    state: str | None
    source: str
    result: str
    transposed: bool = False


def _stored(item: Carried, array: np.ndarray) -> np.ndarray:
    """Return the array of a weight or state, or several, as its graph reads it, or the reverse."""
    return np.swapaxes(array, -1, -2) if item.transposed else array


def parts_of(vector: np.ndarray, shapes: Iterable[tuple[int, ...]]) -> list[np.ndarray]:
    """Return the parts of a vector, as arrays that share its memory."""
    parts, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        parts.append(vector[start:stop].reshape(shape))
        start = stop
    return parts


class CarriedBuffers:
    """Three copies of weights and states: a step reads one copy and writes the next.

    If a loss is non-finite, the copy before the one that gave it still exists. With ``vectors``, the arrays
    of a copy, which have one type, are parts of a vector.
    """

    COPIES = 3

    def __init__(self, carried: list[Carried], arrays: dict, device: Device, vectors: bool = False):
        self.carried = carried
        self._device = device
        self.values: list[list[Any]] = []
        self._arrays: list[list[np.ndarray]] = []
        self._vectors: list[np.ndarray] = []
        for copy in range(self.COPIES):
            own = [np.array(_stored(item, arrays[item.weight, item.state]), order="C") for item in carried]
            if copy:
                own = [np.zeros_like(array) for array in own]
            if vectors:
                self._vectors.append(np.concatenate([array.ravel() for array in own]))
                own = parts_of(self._vectors[-1], map(np.shape, own))
            self._arrays.append(own)
            self.values.append([ort_value(array, device) for array in own])
        self.current = 0
        self.steps = 0

    @property
    def next(self) -> int:
        """Number of the copy that the next step writes."""
        return (self.current + 1) % self.COPIES

    def advance(self) -> None:
        """Make the copy that was just written the current one."""
        self.current = (self.current + 1) % self.COPIES  # faster than the property
        self.steps += 1

    def step_back(self, count: int) -> None:
        """Return to an earlier copy; at most two steps, and never before the first."""
        count = min(count, self.steps, self.COPIES - 1)
        self.current = (self.current - count) % self.COPIES
        self.steps -= count

    def write(self, values: dict[tuple[str, str | None], np.ndarray], copy: int | None = None) -> None:
        """Replace the values of a copy, by default the current one."""
        replaced = self.values[self.current if copy is None else copy]
        for item, value in zip(self.carried, replaced, strict=True):
            value.update_inplace(np.asarray(_stored(item, values[item.weight, item.state]), order="C"))

    def load(self, vector: np.ndarray) -> np.ndarray:
        """Replace the current copy, of a step with ``vectors``; return it in the type of the graph."""
        own = self._vectors[self.current]
        with np.errstate(over="ignore"):  # an overflow makes the objective non-finite, too
            own[...] = vector
        if not self._device.is_cpu:
            for value, array in zip(self.values[self.current], self._arrays[self.current], strict=True):
                value.update_inplace(array)
        return own

    def written(self) -> np.ndarray:
        """Return the vector that the last call wrote, which the next one overwrites."""
        if not self._device.is_cpu:
            for value, array in zip(self.values[self.next], self._arrays[self.next], strict=True):
                array[...] = value.numpy()
        return self._vectors[self.next]

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the arrays of a copy."""
        return list(map(np.shape, self._arrays[0]))

    def between(
        self, copy: int, carried: list[Carried] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the tensors that a step reads from a copy and those it writes, by the names in its graph."""
        carried, written = carried or self.carried, self.values[(copy + 1) % self.COPIES]
        return (
            {item.source: value for item, value in zip(carried, self.values[copy], strict=True)},
            {item.result: value for item, value in zip(carried, written, strict=True)},
        )

    def weights(self, copy: int) -> dict[str, Any]:
        """Return the weights of a copy, on the device."""
        return {
            item.weight: value
            for item, value in zip(self.carried, self.values[copy], strict=True)
            if item.state is None
        }

    def split(
        self, copy: int | None = None
    ) -> tuple[dict[str, np.ndarray], dict[tuple[str, str], np.ndarray]]:
        """Return the weights of a copy, by default the current one, and the states of the update."""
        values = self.read(copy)
        weights = {weight: value for (weight, state), value in values.items() if state is None}
        return weights, {(w, state): value for (w, state), value in values.items() if state is not None}

    def read(self, copy: int | None = None) -> dict[tuple[str, str | None], np.ndarray]:
        """Return the values of a copy, by default the current one, copied to numpy arrays."""
        values = self.values[self.current if copy is None else copy]
        return {
            (item.weight, item.state): np.array(_stored(item, value.numpy()), order="C")
            for item, value in zip(self.carried, values, strict=True)
        }
