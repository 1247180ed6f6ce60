"""Selection of the kind of training step that an execution provider supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from ..data.samples import Data
from ..exceptions import ExecutionError
from ..graphs.nodes import all_nodes
from ..runtime.buffers import Carried
from ..runtime.devices import Device
from ..runtime.onnxruntime_module import runtime_failures
from .graphs.task import TrainingTask
from .solvers.full_batch import FullBatchStep
from .steps.base_step import BaseStep
from .steps.epoch_graph import RANDOM
from .steps.epoch_step import EpochStep
from .steps.forward_backward_step import ForwardBackwardStep
from .steps.single_graph_step import SingleGraphStep

__all__ = ["CheckedFullBatchStep", "ChosenStep"]

#: Learning rate of a trial, and maximum relative difference from the updates on the CPU. Updates that divide
#: by the magnitude of a gradient amplify the rounding of gradients near zero.
TRIAL_RATE, TOLERANCE = 0.1, 0.3
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
                updated = _trial(step, arguments)
                expected = _trial(kind(self.task, Device("cpu"), self.n_jobs), arguments)
                reason = self._compare(step, updated, expected, arguments)
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

    def _compare(self, step: BaseStep, updated: dict, expected: dict, arguments: Any) -> str:
        """Return how the weights after a trial differ from the CPU, unless the graph draws random numbers."""
        nodes = (node for model in step.graphs().values() for node in all_nodes(model.graph))
        if any(node.op_type in RANDOM for node in nodes):
            return ""
        for (name, state), after in expected.items():
            if state is not None or not np.isfinite(after).all():
                continue
            change = np.linalg.norm(after.astype(np.float64) - arguments[2][name])
            distance = np.linalg.norm(updated[name, state].astype(np.float64) - after)
            if not distance <= TOLERANCE * change + 1e-5 * np.linalg.norm(after):
                return f"its updates of weight {name!r} differ from those of the CPU"
        return ""

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        if self.chosen is not None:
            self.chosen.release()

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of the selected kind of step, or of the first kind before the selection."""
        step = self._kinds[0](self.task, self.device, self.n_jobs) if self.chosen is None else self.chosen
        return step.graphs()


def _trial(step: BaseStep, arguments: Any) -> dict:
    """Return weights and states after a full and a short batch."""
    data, sizes, *_ = arguments
    buffers = step.start(*arguments)
    step.set_rate(TRIAL_RATE)
    step.run_epoch(np.arange(sum(sizes), dtype=np.int64) % len(data), sizes[0], buffers)
    return buffers.read()


class CheckedFullBatchStep(FullBatchStep):
    """FullBatchStep on a provider, compared with the CPU before the training."""

    def start(self, data: Data, weights: dict[str, np.ndarray], whole: bool = False) -> None:
        """Bind data, weights and results, and compare at perturbed weights."""
        super().start(data, weights, whole)
        reference = FullBatchStep(self.task, Device("cpu"), self._n_jobs)
        reference.start(data, weights, whole)
        vector = self.pack(weights)
        vector += 0.1 * np.random.default_rng(0).standard_normal(vector.shape) * (1 + np.abs(vector))
        value, gradient = self.evaluate(vector)
        expected, other = reference.evaluate(vector)
        if not np.isfinite(expected):
            return
        difference = abs(value - expected) / max(abs(expected), 1e-30)
        norm = max(np.linalg.norm(other), 1e-30)
        difference = max(difference, float(np.linalg.norm(gradient - other) / norm))
        if not difference <= TOLERANCE:
            raise ExecutionError(
                f"{self.device.provider} cannot be used for this training: objective or gradient differ from "
                f"the CPU by {difference:.0%}. Use device='cpu', or another version of the provider."
            )
