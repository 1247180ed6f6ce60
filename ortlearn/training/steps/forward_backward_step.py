"""A training step with separate calls for forward and backward."""

from __future__ import annotations

from onnx import ModelProto

from ...data.samples import Data
from ...differentiation import build_gradient
from ...runtime.buffers import Carried
from ..graphs.names import BATCH
from .batch_step import BatchStep, Plan
from .four_calls import four_calls
from .two_calls import two_calls

__all__ = ["ForwardBackwardStep"]


class ForwardBackwardStep(BatchStep):
    """Train with separate calls for forward and backward.

    If ortlearn's rules differentiate the model and the loss is a graph, a batch is two calls: forward, then
    loss, backward and update. Otherwise it is four calls, and the loss may be a Python function.
    """

    def build(self) -> list[Carried]:
        """Return an empty list: the graphs depend on the batch size."""
        self._size: int | None = None
        return []

    def prepare(self, data: Data, sizes: list[int]) -> None:
        """Build the graphs for the batch sizes."""
        if self._size is None or (self.plan.gathers and self._size != sizes[0]):
            self._size, self.plan = sizes[0], self._new_plan(sizes[0])
        self.carried = self.plan.carried

    def _new_plan(self, size: int | str) -> Plan:
        """Return the calls for full batches of a size."""
        loss = self.task.objective.loss
        if loss is not None and loss.in_python:
            return four_calls(self, size)
        return build_gradient(
            self.task.gradient,
            lambda: two_calls(self, size) or four_calls(self, size),
            lambda: four_calls(self, size),
        )

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of the calls; before the first training, those with a dynamic batch size."""
        return (self._new_plan(BATCH) if self._size is None else self.plan).models
