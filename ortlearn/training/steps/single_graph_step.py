"""A training step as one call: gather, objective, gradient and update in one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...data.samples import Data
from ...runtime.buffers import BatchBuffer, Carried, CarriedBuffers
from ...runtime.calls import BoundCall
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
        self._sparse: dict[int, list[tuple[BatchBuffer, Any]]] | None = {} if data.is_sparse else None
        values: dict[str, Any] = {}
        if self._sparse is None:
            values = {name: ort_value(a, self.device) for name, a in fixed.items()}
        self._rate, self._objective = (ort_scalar(self.task.graph.dtype, self.device) for _ in range(2))
        self._rows = {}
        self._calls: dict[tuple[int, int], Callable[[], None]] = {}
        for size in sizes:
            self._rows[size] = ort_value(np.arange(size, dtype=np.int64), self.device)
            if self._sparse is not None:
                # Sparse samples are converted to dense for each batch, which replaces the columns.
                own = {name: BatchBuffer(a, size, self.device) for name, a in fixed.items()}
                self._sparse[size] = [(own[name], a) for name, a in fixed.items()]
                values = {name: buffer.value for name, buffer in own.items()}
            values |= {ROWS: self._rows[size], RATE: self._rate}
            for copy in range(buffers.COPIES):
                read, written = buffers.between(copy)
                call = BoundCall(self.session, values | read, {OBJECTIVE: self._objective, **written})
                self._calls[size, copy] = call.function

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        self._rows, self._calls, self._sparse, self._loaded = {}, {}, None, None

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Update on a batch and return its objective."""
        size = len(rows)
        if self._sparse is None:
            self._rows[size].update_inplace(rows)
        else:
            for buffer, array in self._sparse[size]:
                buffer.load(array, rows)
        self._calls[size, buffers.current]()
        return float(self._objective.numpy())

    def graphs(self):
        """Return the graph of the step."""
        return {"step": self.model}
