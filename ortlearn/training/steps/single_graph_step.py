"""A training step as one call: gather, objective, gradient and update in one graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.samples import Data
from ...runtime.buffers import BatchBuffer, Carried, CarriedBuffers
from ...runtime.devices import ort_scalar, ort_value
from ...runtime.sessions import make_session
from ..graphs.names import OBJECTIVE, RATE, ROWS
from ..graphs.step_graphs import step_graph
from .base_step import BaseStep

__all__ = ["SingleGraphStep"]


class SingleGraphStep(BaseStep):
    """Train with one graph per batch; all samples are bound once.

    Parameters
    ----------
    task : TrainingTask
        Graph, objective and update.
    device : Device
        Device to run on.
    n_jobs : int, default=None
        Number of threads of an operator.
    """

    def build(self) -> list[Carried]:
        """Build graph and session."""
        graph = step_graph(self.task)
        self.model = graph.model
        self.session = make_session(graph.model, self.device, self.n_jobs)
        return graph.carried

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Bind data, weights and results once for every batch size and copy of the weights."""
        fixed = self.task.columns(data)
        names = {value.name for value in self.session.get_inputs()}
        self._sparse: dict[int, list[tuple[BatchBuffer, Any]]] | None = {} if data.is_sparse else None
        values: dict[str, Any] = {}
        if self._sparse is None:
            values = {name: ort_value(a, self.device) for name, a in fixed.items() if name in names}
        self._rate, self._objective = (ort_scalar(self.task.graph.dtype, self.device) for _ in range(2))
        self._rows = {}
        self._bindings: dict[tuple[int, int], Any] = {}
        for size in sizes:
            self._rows[size] = ort_value(np.arange(size, dtype=np.int64), self.device)
            if self._sparse is not None:
                # Sparse samples are converted to dense for each batch, which replaces the columns.
                own = {name: BatchBuffer(a, size, self.device) for name, a in fixed.items()}
                self._sparse[size] = [(own[name], a) for name, a in fixed.items()]
                values = {name: buffer.value for name, buffer in own.items() if name in names}
            inputs = {**values, ROWS: self._rows[size], RATE: self._rate}
            for copy in range(buffers.COPIES):
                self._bindings[size, copy] = self._binding(inputs, names, buffers, copy)

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        self._rows, self._bindings, self._sparse, self._loaded = {}, {}, None, None

    def _binding(self, inputs: dict, names: set[str], buffers: CarriedBuffers, copy: int) -> Any:
        binding = self.session.io_binding()
        written = (copy + 1) % buffers.COPIES
        for name, value in inputs.items():
            if name in names:
                binding.bind_ortvalue_input(name, value)
        for item, value in zip(buffers.carried, buffers.values[copy], strict=True):
            if item.source in names:
                binding.bind_ortvalue_input(item.source, value)
        binding.bind_ortvalue_output(OBJECTIVE, self._objective)
        for item, value in zip(buffers.carried, buffers.values[written], strict=True):
            binding.bind_ortvalue_output(item.result, value)
        return binding

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Update on a batch and return its objective."""
        size = len(rows)
        if self._sparse is None:
            self._rows[size].update_inplace(rows)
        else:
            for buffer, array in self._sparse[size]:
                buffer.load(array, rows)
        self.session.run_with_iobinding(self._bindings[size, buffers.current])
        return float(self._objective.numpy())

    def graphs(self):
        """Return the graph of the step."""
        return {"step": self.model}
