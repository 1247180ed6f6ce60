"""A training step with separate calls for forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.samples import Data
from ...differentiation import build_gradient
from ...runtime.buffers import Carried, CarriedBuffers
from ...runtime.devices import ort_scalar
from ..graphs.names import BATCH
from .base_step import BaseStep
from .four_calls import FourCalls
from .two_calls import TwoCalls

__all__ = ["ForwardBackwardStep"]


class ForwardBackwardStep(BaseStep):
    """Train with separate calls for forward and backward.

    If ortlearn's rules differentiate the model and the loss is a graph, a batch is two calls: forward, then
    loss, backward and update. Otherwise it is four calls, and the loss may be a Python function.

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
        """Return an empty list: the graphs depend on the batch size."""
        self._calls: TwoCalls | FourCalls | None = None
        return []

    def prepare(self, data: Data, sizes: list[int]) -> None:
        """Build the graphs for the batch sizes."""
        if self._calls is None or (isinstance(self._calls, TwoCalls) and self._calls.size != sizes[0]):
            self._calls = self._new_calls(sizes[0])
        self.carried = self._calls.carried

    def _new_calls(self, size: int | str) -> TwoCalls | FourCalls:
        def two() -> TwoCalls | FourCalls:
            calls = TwoCalls(self, size)
            return FourCalls(self, size) if calls.has_dynamic_shapes else calls

        loss = self.task.objective.loss
        if loss is not None and loss.in_python:
            return FourCalls(self, size)
        return build_gradient(self.task.gradient, two, lambda: FourCalls(self, size))

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Allocate and bind the buffers of each batch size."""
        assert self._calls is not None
        self._rate = ort_scalar(self.task.graph.dtype, self.device)
        self._batches: dict[int, Any] = {
            size: self._calls.bind(data, size, buffers, self._rate) for size in sizes
        }

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Read batches from other samples."""
        for batch in self._batches.values():
            batch.rebind(data, buffers)

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        self._batches, self._loaded = {}, None

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Update on a batch and return its objective."""
        return self._batches[len(rows)].run(rows, buffers.current)

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of the calls; before the first training, those with a dynamic batch size."""
        calls = self._new_calls(BATCH) if self._calls is None else self._calls
        return calls.graphs()
