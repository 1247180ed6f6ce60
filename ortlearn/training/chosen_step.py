"""The form of a training step that an execution provider takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ..exceptions import ExecutionError
from ..graphs.nodes import all_nodes
from .base_step import BaseStep, Pause
from .buffers import CarriedBuffers, Data
from .devices import Device
from .epoch_graph import RANDOM
from .epoch_step import EpochStep
from .forward_backward_step import ForwardBackwardStep
from .full_batch import FullBatchStep
from .runtime import runtime_failures
from .single_graph_step import SingleGraphStep
from .step_graphs import Carried
from .task import TrainingTask

__all__ = ["CheckedFullBatchStep", "ChosenStep"]

#: Learning rate of a trial, and the largest distance from the CPU's updates, over their size. Updates that
#: divide by the size of a gradient make much of the rounding of gradients near zero.
RATE_OF_TRIAL, TOLERANCE = 0.1, 0.3
#: Forms of the same updates, the fastest first: an epoch as one graph, a batch as one graph, as two.
FORMS: list[type[BaseStep]] = [EpochStep, SingleGraphStep, ForwardBackwardStep]


class ChosenStep(BaseStep):
    """Train by the first form of a step that a provider runs, and that moves the weights as on the CPU.

    A form is compiled and run on a full and a short batch, whose results are not kept, on the provider and on
    the CPU. An epoch as one graph comes first, then a batch as one graph, then forward and backward.

    Parameters
    ----------
    task : TrainingTask
        What is trained.
    device : Device
        Where.
    n_jobs : int, default=None
        Threads of an operator.
    first : type of BaseStep, default=EpochStep
        The form to begin with.

    Attributes
    ----------
    refusals : dict of str to str
        Forms that cannot be used, and why.
    """

    def __init__(
        self,
        task: TrainingTask,
        device: Device,
        n_jobs: int | None = None,
        first: type[BaseStep] = EpochStep,
    ):
        self._first = first
        self.refusals: dict[str, str] = {}
        super().__init__(task, device, n_jobs)

    def build(self) -> list[Carried]:
        """Return nothing yet: the form is chosen when data come."""
        self.chosen: BaseStep | None = None
        return []

    @property
    def _step(self) -> BaseStep:
        if self.chosen is None:
            return self._first(self.task, self.device, self.n_jobs)
        return self.chosen

    def start(
        self,
        data: Data,
        sizes: list[int],
        weights: dict[str, np.ndarray],
        states: dict | None = None,
        n_samples: int | None = None,
    ) -> CarriedBuffers:
        """Choose the form, put weights and states on the device and bind them to the data."""
        arguments = data, sizes, weights, states, n_samples
        if self.chosen is None:
            self.chosen = self._choose(arguments)
        self.chosen.checks_loss = self.checks_loss
        return self.chosen.start(*arguments)

    def _choose(self, arguments: Any) -> BaseStep:
        forms = FORMS if self._first is EpochStep else [self._first]
        for form in forms:
            try:
                step = form(self.task, self.device, self.n_jobs)
                moved = _trial(step, arguments)
                expected = _trial(form(self.task, Device("cpu"), self.n_jobs), arguments)
                reason = self._compare(step, moved, expected, arguments)
            except runtime_failures() as error:
                reason = " ".join(str(error).split())[:300]
            if not reason:
                return step
            self.refusals[form.__name__] = reason
        told = "; ".join(f"{name}: {reason}" for name, reason in self.refusals.items())
        raise ExecutionError(
            f"{self.device.provider} cannot be used for this training. {told}. Use device='cpu', or another "
            "version of the provider."
        )

    def _compare(self, step: BaseStep, moved: dict, expected: dict, arguments: Any) -> str:
        """Return how the weights after a trial differ from the CPU's; numbers that are drawn always do."""
        nodes = (node for model in step.graphs().values() for node in all_nodes(model.graph))
        if any(node.op_type in RANDOM for node in nodes):
            return ""
        for (name, state), after in expected.items():
            if state is not None or not np.isfinite(after).all():
                continue
            change = np.linalg.norm(after.astype(np.float64) - arguments[2][name])
            away = np.linalg.norm(moved[name, state].astype(np.float64) - after)
            if not away <= TOLERANCE * change + 1e-5 * np.linalg.norm(after):
                return f"it moves weight {name!r} by other numbers than the CPU"
        return ""

    def load(self, data: Data, buffers: CarriedBuffers) -> None:
        """Take other rows."""
        self._step.load(data, buffers)

    def release(self) -> None:
        """Let go of data and weights; graphs and sessions stay."""
        if self.chosen is not None:
            self.chosen.release()

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next steps."""
        self._step.set_rate(rate)

    def run_epoch(
        self, order: np.ndarray, batch_size: int, buffers: CarriedBuffers, pause: Pause | None = None
    ) -> np.ndarray:
        """Update on every batch of an epoch, up to the first objective that is not finite."""
        return self._step.run_epoch(order, batch_size, buffers, pause)

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Return the objective of the rows of a last batch."""
        return self._step.run(rows, buffers)

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of the form that was chosen, of the first one before."""
        return self._step.graphs()


def _trial(step: BaseStep, arguments: Any) -> dict:
    """Return weights and states after a full and a short batch."""
    data, sizes, weights, states, n_samples = arguments
    buffers = step.start(data, sizes, weights, states, n_samples)
    step.set_rate(RATE_OF_TRIAL)
    step.run_epoch(np.arange(sum(sizes), dtype=np.int64) % len(data), sizes[0], buffers)
    return buffers.read()


class CheckedFullBatchStep(FullBatchStep):
    """The objective of all rows and its gradient on a provider, compared with the CPU before a training.

    Parameters are those of :class:`FullBatchStep`.
    """

    def start(self, data: Data, weights: dict[str, np.ndarray]) -> None:
        """Bind data, weights and results, and compare away from the weights, where no gradient is zero."""
        super().start(data, weights)
        reference = FullBatchStep(self.task, Device("cpu"), self._n_jobs)
        reference.start(data, weights)
        vector = self.pack(weights)
        vector += 0.1 * np.random.default_rng(0).standard_normal(vector.shape) * (1 + np.abs(vector))
        value, gradient = self.evaluate(vector)
        expected, other = reference.evaluate(vector)
        if not np.isfinite(expected):
            return
        away = abs(value - expected) / max(abs(expected), 1e-30)
        away = max(away, float(np.linalg.norm(gradient - other) / max(np.linalg.norm(other), 1e-30)))
        if not away <= TOLERANCE:
            raise ExecutionError(
                f"{self.device.provider} cannot be used for this training: objective or gradient are "
                f"{away:.0%} away from the CPU's. Use device='cpu', or another version of the provider."
            )
