"""Training batch by batch: a list of graphs over one dictionary of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.samples import Data
from ...runtime.buffers import BatchBuffer, Carried, CarriedBuffers
from ...runtime.calls import BoundCall
from ...runtime.devices import ort_scalar, ort_value
from ..graphs.names import OBJECTIVE, RATE, SAMPLE_INDICES
from .base_step import BaseStep

__all__ = ["BatchStep", "Part", "Plan", "Tensors"]

#: Tensors of a step on the device, by name.
Tensors = dict[str, Any]
#: The session of a graph, or a function that gets all tensors and returns a call in Python.
Part = Any


def _none(*_: Any) -> Tensors:
    """Return no tensors."""
    return {}


@dataclass(frozen=True)
class Plan:
    """The calls of a batch, in their order."""

    models: dict[str, ModelProto]  # graphs by name
    carried: list[Carried]  # weights and states
    parts: Callable[[int], list[Part]]  # returns the parts for a batch size
    # Returns the tensors between the parts; an array is a tensor of functions in Python only.
    tensors: Callable[[int, Data, Tensors], Tensors] = _none
    results: Callable[[Tensors], Tensors] = _none  # returns further results, from new weights
    terms: tuple[str, ...] = (OBJECTIVE,)  # scalars whose sum is the objective
    gathers: bool = True  # whether the graphs take the batch from all samples, by its indices
    of_rate: Callable[[int], Iterable[Any]] = _none  # returns sessions that run when the rate changes


class BatchStep(BaseStep):
    """Train with one or several calls per batch."""

    plan: Plan

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Allocate and bind the tensors of each batch size."""
        self._rate = ort_scalar(self.task.graph.dtype, self.device)
        self._batches = {size: _Batch(self, data, size, buffers, self._rate) for size in sizes}

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Read batches from other samples."""
        for batch in self._batches.values():
            batch.rebind(data, buffers)

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        self._batches, self._data = {}, None

    def set_rate(self, rate: float) -> None:
        """Set the learning rate, and compute what depends only on it."""
        super().set_rate(rate)
        for batch in self._batches.values():
            for call in batch.of_rate:
                call()

    def run(self, samples: np.ndarray, buffers: CarriedBuffers) -> float:
        """Update on a batch and return its objective."""
        return self._batches[len(samples)].run(samples, buffers.current)

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of a batch by name."""
        return self.plan.models


class _Batch:
    """Tensors and bound calls for batches of a size."""

    def __init__(self, step: BatchStep, data: Data, size: int, buffers: CarriedBuffers, rate: Any):
        self._task, self._device, self._plan = step.task, step.device, step.plan
        self._size, self._parts, self._is_cpu = size, step.plan.parts(size), step.device.is_cpu
        self._numbers = np.zeros(size, dtype=np.int64)
        self._indices = ort_value(self._numbers, self._device)
        self._terms = {name: np.zeros((), dtype=self._task.graph.dtype) for name in self._plan.terms}
        scalars = {name: ort_value(array, self._device) for name, array in self._terms.items()}
        self._fixed = {SAMPLE_INDICES: self._indices, RATE: rate, **scalars}
        self._loads: list[tuple[BatchBuffer, Any]] = []
        self.rebind(data, buffers)

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Read batches from other samples."""
        columns = self._task.columns(data)
        gathers = self._plan.gathers and not data.is_sparse
        if self._loads and not gathers:
            self._loads = [(b, a) for (b, _), a in zip(self._loads, columns.values(), strict=True)]
            return
        self._loads = []
        self._set_samples(0 if gathers else np.arange(self._size))  # old indices may be out of bounds
        if gathers:
            values = {name: ort_value(array, self._device) for name, array in columns.items()}
        else:
            # A dense copy of the batch replaces the columns.
            own = {name: BatchBuffer(array, self._size, self._device) for name, array in columns.items()}
            self._loads = [(own[name], array) for name, array in columns.items()]
            for buffer, array in self._loads:  # a first call allocates tensors, and may check indices
                buffer.load(array, self._numbers)
            values = {name: buffer.value for name, buffer in own.items()}
        values |= self._fixed
        values |= self._plan.tensors(self._size, data, values | buffers.weights(buffers.current))
        self._values = values  # keeps the memory that the calls read and write
        self.of_rate = [BoundCall(session, values).function for session in self._plan.of_rate(self._size)]
        self._first, *self._others = (self._reader(name) for name in self._terms)
        self._calls = [self._bound(values, buffers, copy) for copy in range(buffers.COPIES)]

    def _bound(self, values: Tensors, buffers: CarriedBuffers, copy: int) -> list[Callable[[], None]]:
        """Return the calls for a copy of the weights."""
        read, written = buffers.between(copy)
        written |= self._plan.results(buffers.weights((copy + 1) % buffers.COPIES))
        return [
            part(values | read) if callable(part) else BoundCall(part, values | read, written).function
            for part in self._parts
        ]

    def run(self, samples: np.ndarray, copy: int) -> float:
        """Update on a batch and return its objective."""
        if self._loads:
            for buffer, array in self._loads:
                buffer.load(array, samples)
        elif self._is_cpu:
            self._numbers[:] = samples
        else:
            self._set_samples(samples)
        for call in self._calls[copy]:
            call()
        if not self._others:
            return self._first()
        return self._first() + sum(term() for term in self._others)

    def _set_samples(self, samples: Any) -> None:
        """Write the sample indices of a batch."""
        self._numbers[:] = samples
        if not self._is_cpu:
            self._indices.update_inplace(self._numbers)

    def _reader(self, name: str) -> Callable[[], float]:
        """Return a function that reads a scalar, whose memory is an array on the CPU."""
        value = self._values[name]
        if isinstance(value, np.ndarray):
            return value.item
        return self._terms[name].item if self._is_cpu else lambda: float(value.numpy())
