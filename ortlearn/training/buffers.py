"""Training data, and tensors that are allocated once per training."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .columns import Columns
from .devices import Device, ort_value
from .objective import SAMPLE_WEIGHT
from .sparse_products import entry_arrays, sparse_features, stays_sparse
from .step_graphs import Carried
from .task import TrainingTask

__all__ = [
    "BatchBuffer",
    "CarriedBuffers",
    "Data",
    "row_bytes",
    "take_rows",
    "taken_rows",
    "with_sparse_rows",
]


class Data:
    """Training samples.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features), or Columns
        Features, C-contiguous, in the type of the graph; Columns for a graph with several inputs.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in the type of the graph.
    sample_weight : ndarray of shape (n_samples,) or (n_samples, n_positions), default=None
        Weights of the samples, or of their positions for losses by position.
    features : dict of str to ndarray or CSR matrix, default=None
        Results of the part of the graph that was computed before the training; they replace X.
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        features: dict[str, Any] | None = None,
    ):
        self.X = X
        self.y = y
        self.sample_weight = sample_weight
        self.features = features

    def inputs(self, task: TrainingTask) -> dict[str, Any]:
        """Return the features of all samples by the name of the input.

        Parameters
        ----------
        task : TrainingTask
            Graph, objective and update.

        Returns
        -------
        dict of str to array
            Features, dense or sparse.
        """
        if self.features is not None:
            return dict(self.features)
        if isinstance(self.X, Columns):
            return self.X.feeds(list(task.graph.features))
        return {next(iter(task.graph.features)): self.X}

    def columns(self, task: TrainingTask) -> dict[str, Any]:
        """Return the arrays of all samples by the name of the input.

        Parameters
        ----------
        task : TrainingTask
            Graph, objective and update.

        Returns
        -------
        dict of str to array
            Features, labels and, if given, sample weights.
        """
        columns = self.inputs(task)
        columns[task.objective.label] = self.y
        if self.sample_weight is not None:
            columns[SAMPLE_WEIGHT] = self.sample_weight
        return columns

    def take(self, rows: np.ndarray) -> Data:
        """Return some of the samples.

        Parameters
        ----------
        rows : ndarray of int
            Indices.

        Returns
        -------
        Data
            Copy of these samples.
        """
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        features = self.features and {name: array[rows] for name, array in self.features.items()}
        return Data(self.X[rows], self.y[rows], weights, features)

    @property
    def is_sparse(self) -> bool:
        """Whether features are sparse."""
        return any(map(issparse, (self.features or {"": self.X}).values()))

    @property
    def row_weight(self) -> np.ndarray | None:
        """Weights of the samples, averaged over positions."""
        weights = self.sample_weight
        return weights if weights is None or weights.ndim == 1 else weights.mean(axis=1, dtype=np.float64)

    def __len__(self) -> int:
        return self.X.shape[0]


def with_sparse_rows(task: TrainingTask, data: Data) -> TrainingTask:
    """Return a task that reads the entries of sparse features if the graph only multiplies them."""
    names = [name for name, array in data.inputs(task).items() if stays_sparse(array)]
    sparse = sparse_features(task.graph.model, names)
    return task.changed(sparse=sparse) if sparse else task


class BatchBuffer:
    """A tensor on a device for the samples of a batch, reused for all batches."""

    def __init__(self, like: np.ndarray, size: int, device: Device):
        self._staging = np.empty((size, *like.shape[1:]), dtype=like.dtype)
        self.value = ort_value(self._staging, device)
        self._shared = device.is_cpu

    def load(self, array: np.ndarray, rows: np.ndarray) -> None:
        """Copy rows of an array, or of a sparse matrix, into the tensor."""
        take_rows(array, rows, self._staging)
        if not self._shared:
            self.value.update_inplace(self._staging)


def row_bytes(arrays: Iterable[Any]) -> int:
    """Return the bytes of a row of arrays or sparse matrices, in dense form."""
    return sum(math.prod(array.shape[1:]) * array.dtype.itemsize for array in arrays)


def take_rows(array: Any, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return rows of an array or of a sparse matrix, as a C-contiguous array."""
    if issparse(array):
        return array[rows].toarray(order="C" if out is None else None, out=out)
    return np.take(array, rows, axis=0, out=out, mode="clip")  # other modes buffer the output


def taken_rows(
    task: TrainingTask, columns: Iterable[tuple[str, Any]], rows: np.ndarray, size: int
) -> dict[str, np.ndarray]:
    """Return rows as arrays: the entries of sparse features of the task, others dense."""
    taken: dict[str, np.ndarray] = {}
    for name, array in columns:
        if name in task.graph.sparse:
            taken |= entry_arrays(name, array, rows, size)
        else:
            taken[name] = take_rows(array, rows)
    return taken


def _stored(item: Carried, array: np.ndarray) -> np.ndarray:
    """Return the array of a weight or state as its graph reads it, or the reverse."""
    return array.T if item.transposed else array


class CarriedBuffers:
    """Three copies of weights and states: a step reads one copy and writes the next.

    If a loss is non-finite, the copy before the one that gave it still exists.
    """

    COPIES = 3

    def __init__(self, carried: list[Carried], arrays: dict, device: Device):
        self.carried = carried
        self._device = device
        self.values: list[list[Any]] = []
        self._arrays: list[list[np.ndarray]] = []
        for copy in range(self.COPIES):
            own = [np.array(_stored(item, arrays[item.weight, item.state]), order="C") for item in carried]
            if copy:
                own = [np.zeros_like(array) for array in own]
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
        self.current = self.next
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

    def weights(self, copy: int) -> dict[str, Any]:
        """Return the weights of a copy, on the device."""
        return {
            item.weight: value
            for item, value in zip(self.carried, self.values[copy], strict=True)
            if item.state is None
        }

    def read(self, copy: int | None = None) -> dict[tuple[str, str | None], np.ndarray]:
        """Return the values of a copy, by default the current one, copied to numpy arrays."""
        values = self.values[self.current if copy is None else copy]
        return {
            (item.weight, item.state): np.array(_stored(item, value.numpy()), order="C")
            for item, value in zip(self.carried, values, strict=True)
        }
