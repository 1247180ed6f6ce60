"""A batch as two calls: forward, then loss, backward and update."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.samples import Data
from ...graphs.nodes import all_nodes
from ...runtime.buffers import BatchBuffer, CarriedBuffers
from ...runtime.calls import BoundCall
from ...runtime.devices import ort_value
from ..graphs.names import OBJECTIVE, RATE, ROWS
from ..graphs.step_graphs import StepGraph
from .base_step import BaseStep
from .compiled import compiled_graph
from .engines import DYNAMIC_SHAPE_OPERATORS
from .two_call_graphs import two_call_graphs

__all__ = ["TwoCalls"]


class TwoCalls:
    """Graphs and sessions of a step with two calls per batch; the loss is a graph."""

    def __init__(self, step: BaseStep, size: int | str):
        self.step, self.size = step, size
        self._compiled: dict[int | str, list[tuple[StepGraph, Any]]] = {}
        self.carried = self.compiled(size)[1][0].carried

    def compiled(self, size: int | str) -> list[tuple[StepGraph, Any]]:
        """Return graphs and sessions of both calls for batches of a size."""
        if size not in self._compiled:
            build = cache(partial(two_call_graphs, self.step.task, size))
            self._compiled[size] = [self._session(size, part, build) for part in (0, 1)]
        return self._compiled[size]

    def _session(self, size: int | str, part: int, build: Callable[[], Any]) -> tuple[StepGraph, Any]:
        task, device = self.step.task, self.step.device
        arguments = task, (size, "call", part), device, self.step.threads(self.size), lambda: build()[part]
        return compiled_graph(*arguments, spins=False)

    @property
    def has_dynamic_shapes(self) -> bool:
        """Whether the shapes of tensors between the calls depend on values."""
        (forward, _), _ = self.compiled(self.size)
        return any(node.op_type in DYNAMIC_SHAPE_OPERATORS for node in all_nodes(forward.model.graph))

    def bind(self, data: Data, size: int, buffers: CarriedBuffers, rate: Any) -> TwoCallBatch:
        """Return the bound calls for batches of a size."""
        return TwoCallBatch(self, data, size, buffers, rate)

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of both calls, for full batches."""
        (forward, _), (backward, _) = self.compiled(self.size)
        return {"forward": forward.model, "backward": backward.model}


class TwoCallBatch:
    """Tensors and bound calls for batches of a size."""

    def __init__(self, calls: TwoCalls, data: Data, size: int, buffers: CarriedBuffers, rate: Any):
        task, self._device = calls.step.task, calls.step.device
        self._parts, self._task = calls.compiled(size), task
        self._numbers = np.zeros(size, dtype=np.int64)
        self._value = np.zeros((), dtype=task.graph.dtype)
        self._objective = ort_value(self._value, self._device)
        self._rows = ort_value(self._numbers, self._device)
        self._fixed = {ROWS: self._rows, RATE: rate, OBJECTIVE: self._objective}
        self._loads: list[tuple[BatchBuffer, Any]] = []
        self.rebind(data, buffers)

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Read batches from other samples."""
        columns = self._task.columns(data)
        self._loads = []
        self._numbers[:] = 0  # old indices may be out of bounds
        if data.is_sparse:
            # Sparse samples are converted to dense for each batch, which replaces the columns.
            size = len(self._numbers)
            self._numbers[:] = np.arange(size)
            own = {name: BatchBuffer(array, size, self._device) for name, array in columns.items()}
            self._loads = [(own[name], array) for name, array in columns.items()]
            values = {name: buffer.value for name, buffer in own.items()}
        else:
            values = {name: ort_value(array, self._device) for name, array in columns.items()}
        values |= self._fixed
        values |= self._saved(values, buffers)
        self._values = values  # keeps the memory that the calls read and write
        self._calls = [self._bound(values, buffers, copy) for copy in range(buffers.COPIES)]

    def _saved(self, values: dict[str, Any], buffers: CarriedBuffers) -> dict[str, Any]:
        """Return the tensors between the calls, allocated by a first call of forward."""
        known = values | buffers.weights(buffers.current)
        call = BoundCall(self._parts[0][1], known, device=self._device)
        call()
        return call.new_outputs()

    def _bound(self, values: dict[str, Any], buffers: CarriedBuffers, copy: int) -> list[Callable[[], None]]:
        """Return both calls for a copy of the weights."""
        read, written = buffers.between(copy, self._parts[1][0].carried)
        return [BoundCall(session, values | read, written).function for _, session in self._parts]

    def run(self, rows: np.ndarray, copy: int) -> float:
        """Update on a batch and return its objective."""
        for buffer, array in self._loads:
            buffer.load(array, rows)
        if not self._loads:
            self._numbers[:] = rows
            if not self._device.is_cpu:
                self._rows.update_inplace(self._numbers)
        forward, backward = self._calls[copy]
        forward()
        backward()
        return self._value.item() if self._device.is_cpu else float(self._objective.numpy())
