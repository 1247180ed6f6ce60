"""Selection of the kind of training step that an execution provider supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from ..exceptions import ExecutionError
from ..graphs.nodes import all_nodes
from ..runtime.buffers import Carried
from ..runtime.devices import Device
from ..runtime.onnxruntime_module import runtime_failures
from .graphs.task import TrainingTask
from .steps.base_step import BaseStep
from .steps.epoch_graph import RANDOM
from .steps.epoch_step import EpochStep
from .steps.forward_backward_step import ForwardBackwardStep
from .steps.single_graph_step import SingleGraphStep

__all__ = ["ChosenStep"]

#: Maximum relative difference from the updates on the CPU. Updates that divide by the magnitude of a gradient
#: amplify the rounding of gradients near zero.
TOLERANCE = 0.3
#: Kinds of steps, the fastest first: one graph per epoch, one per batch, two per batch.
STEPS: Sequence[type[BaseStep]] = (EpochStep, SingleGraphStep, ForwardBackwardStep)


class ChosenStep(BaseStep):
    """Train with the fastest kind of step that a provider supports, with the same updates as on the CPU.

    Each kind is tried on a full and a short batch, on the provider and on the CPU.
    """

    def __init__(
        self,
        task: TrainingTask,
        device: Device,
        n_jobs: int | None = None,
        kinds: Sequence[type[BaseStep]] = STEPS,
    ):
        self._kinds = kinds
        self.refusals: dict[str, str] = {}  # reasons why kinds of steps cannot be used
        super().__init__(task, device, n_jobs)

    def build(self) -> list[Carried]:
        """Return an empty list: the kind of step is not selected yet."""
        self.chosen: BaseStep | None = None
        return []

    def selected(self, *arguments: Any) -> BaseStep:
        """Return the fastest kind of step that the provider supports, found by the first call."""
        if self.chosen is None:
            self.chosen = self._choose(arguments)
        return self.chosen

    def _choose(self, arguments: Any) -> BaseStep:
        for kind in self._kinds:
            try:
                step = kind(self.task, self.device, self.n_jobs)
                _, updated = step.trial(*arguments)
                expected = kind(self.task, Device("cpu"), self.n_jobs).trial(*arguments)
                reason = self._compare(step, updated, *expected)
            except runtime_failures() as error:
                reason = " ".join(str(error).split())[:300]
            if not reason:
                return step
            self.refusals[kind.__name__] = reason
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self.refusals.items())
        raise ExecutionError(
            f"{self.device.provider} cannot be used for this training. {reasons}. Use device='cpu', or "
            "another version of the provider."
        )

    def _compare(self, step: BaseStep, updated: dict, before: dict, expected: dict) -> str:
        """Return how the result of a trial differs from the CPU, unless the graph draws random numbers."""
        nodes = (node for model in step.graphs().values() for node in all_nodes(model.graph))
        if any(node.op_type in RANDOM for node in nodes):
            return ""
        for name, after in expected.items():
            if not np.isfinite(after).all():
                continue
            change = np.linalg.norm(after.astype(np.float64) - before[name])
            distance = np.linalg.norm(updated[name].astype(np.float64) - after)
            if not distance <= TOLERANCE * change + 1e-5 * np.linalg.norm(after):
                return f"its {name} differs from that of the CPU"
        return ""

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        if self.chosen is not None:
            self.chosen.release()

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of the selected kind of step, or of the first kind before the selection."""
        step = self._kinds[0](self.task, self.device, self.n_jobs) if self.chosen is None else self.chosen
        return step.graphs()
