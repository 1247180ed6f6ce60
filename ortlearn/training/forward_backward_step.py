"""A step as forward, loss, backward and update: four calls, none of them a loop over weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graphs import make_initializers_of
from .base_step import BaseStep
from .buffers import BatchBuffer, CarriedBuffers, Data
from .devices import ort_value
from .forward_backward import OrtGradientForwardBackward
from .sessions import session_options
from .step_graphs import OBJECTIVE, RATE, SAMPLE_WEIGHT, Carried
from .task import TrainingTask
from .two_call_graphs import loss_gradient_graph, update_graph

__all__ = ["ForwardBackwardStep"]


class ForwardBackwardStep(BaseStep):
    """Train with forward and backward apart, the loss in between.

    Parameters
    ----------
    task : TrainingTask
        What is trained.
    device : Device
        Where.
    n_jobs : int, default=None
        Threads of an operator.
    """

    def build(self) -> list[Carried]:
        """Build the training agent and the sessions of loss and update."""
        update = update_graph(self.task)
        self.penalised = update.value is not None
        self.models = {"update": update.model}
        self.update_session = self.make_session(update.model)
        self.loss_session: Any = None
        if self.task.objective.loss is not None and not self.task.objective.loss.in_python:
            self.models["loss"] = loss_gradient_graph(self.task)
            self.loss_session = self.make_session(self.models["loss"])
        self.function = OrtGradientForwardBackward(
            make_initializers_of(self.task.graph.model, self.task.graph.weights),
            weights_to_train=self.task.graph.weights,
            sess_options=session_options(self.n_jobs),
            providers=self.device.kind,
            device_index=self.device.index,
            gradient=self.task.gradient,
            input_gradients=False,
        ).new_instance()
        return update.carried

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Allocate the buffers of every size of batch, and bind them once."""
        self.rate = ort_value(np.zeros((), dtype=self.task.graph.dtype), self.device)
        self._batches = {size: _BatchBuffers(self, data, size, buffers) for size in sizes}

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Read batches from other rows."""
        columns = data.columns(self.task)
        for batch in self._batches.values():
            batch.columns = {name: (buffer, columns[name]) for name, (buffer, _) in batch.columns.items()}

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next steps."""
        self.rate.update_inplace(np.array(rate, dtype=self.task.graph.dtype))

    def release(self) -> None:
        """Let go of data and weights; graphs and sessions stay."""
        self._batches, self._loaded = {}, None

    def run(self, rows: np.ndarray, buffers: CarriedBuffers) -> float:
        """Update on a batch and return its objective."""
        return self._batches[len(rows)].run(rows, buffers.current)

    def graphs(self):
        """Return forward and backward, loss and update."""
        return {**self.function.owner.models_, **self.models}


class _BatchBuffers:
    """The buffers and bindings of one size of batch."""

    def __init__(self, step: ForwardBackwardStep, data: Data, size: int, buffers: CarriedBuffers):
        task, device = step.task, step.device
        self.step = step
        columns = data.columns(task)
        self.columns = {name: (BatchBuffer(a, size, device), a) for name, a in columns.items()}
        shape = _output_shape(task, size, data.y)
        self.output = ort_value(np.zeros(shape, dtype=task.graph.dtype), device)
        self.output_gradient = ort_value(np.ones(shape, dtype=task.graph.dtype), device)
        self.objective = ort_value(np.zeros((), dtype=task.graph.dtype), device)
        self.penalty = ort_value(np.zeros((), dtype=task.graph.dtype), device)
        self.gradients = {
            name: ort_value(np.zeros(value.shape(), dtype=task.graph.dtype), device)
            for name, value in buffers.weights(0).items()
        }
        self._vectors(buffers)
        self.loss_binding = self._bind_loss()
        self.update_bindings = [self._bind_update(buffers, copy) for copy in range(buffers.COPIES)]

    def _vectors(self, buffers: CarriedBuffers) -> None:
        function, names = self.step.function, self.step.task.graph.weights
        inputs = [self.columns[name][0].value for name in function.owner.input_names]
        self.feeds = []
        for copy in range(buffers.COPIES):
            weights = buffers.weights(copy)
            self.feeds.append(function.input_to_ort([*inputs, *(weights[name] for name in names)]))
        self.outputs = function.input_to_ort([self.output])
        self.output_gradients = function.input_to_ort([self.output_gradient])
        self.gradient_vector = function.input_to_ort([self.gradients[name] for name in names])

    def _bind_loss(self) -> Any:
        session = self.step.loss_session
        if session is None:
            return None
        task = self.step.task
        binding = session.io_binding()
        values = {name: buffer.value for name, (buffer, _) in self.columns.items()}
        values[task.graph.output] = self.output
        for value in session.get_inputs():
            binding.bind_ortvalue_input(value.name, values[value.name])
        binding.bind_ortvalue_output(OBJECTIVE, self.objective)
        binding.bind_ortvalue_output(f"{task.graph.output}_grad", self.output_gradient)
        return binding

    def _bind_update(self, buffers: CarriedBuffers, copy: int) -> Any:
        session = self.step.update_session
        values = {f"{name}_grad": value for name, value in self.gradients.items()}
        values[RATE] = self.step.rate
        written = (copy + 1) % buffers.COPIES
        binding = session.io_binding()
        for item, value in zip(buffers.carried, buffers.values[copy], strict=True):
            values[item.source] = value
        for value in session.get_inputs():
            binding.bind_ortvalue_input(value.name, values[value.name])
        if self.step.penalised:
            binding.bind_ortvalue_output(OBJECTIVE, self.penalty)
        for item, value in zip(buffers.carried, buffers.values[written], strict=True):
            binding.bind_ortvalue_output(item.result, value)
        return binding

    def run(self, rows: np.ndarray, copy: int) -> float:
        """Forward, loss, backward, update."""
        step = self.step
        for buffer, array in self.columns.values():
            buffer.load(array, rows)
        step.function.forward(self.feeds[copy], training=True, forward_outputs_cache=self.outputs)
        if step.loss_session is not None:
            step.loss_session.run_with_iobinding(self.loss_binding)
            value = float(self.objective.numpy())
        elif step.task.objective.loss is None:
            value = float(np.sum(self.output.numpy()))
        else:
            value = self._evaluate(step.task.objective.loss)
        step.function.backward(self.output_gradients, backward_outputs_cache=self.gradient_vector)
        step.update_session.run_with_iobinding(self.update_bindings[copy])
        return value + float(self.penalty.numpy()) if step.penalised else value

    def _evaluate(self, loss: Any) -> float:
        """Return the objective of a loss in Python, its gradient written where backward reads it."""
        task = self.step.task
        labels = self.columns[task.objective.label][0].value.numpy()
        # copies: a function may overwrite what it gets, and backward reads the outputs
        predicted = self.output.numpy()
        rows, gradient = loss.evaluate(labels.copy(), predicted.copy())
        if self.step.checks_loss and hasattr(loss, "check_batch"):
            loss.check_batch(labels, predicted, rows, gradient)
            self.step.checks_loss = False
        if task.objective.weighted:
            weights = self.columns[SAMPLE_WEIGHT][0].value.numpy()
        else:
            weights = np.ones_like(rows)
        # as mean_loss has it: nothing where no row counts
        shares = weights / max(weights.sum(), np.finfo(rows.dtype).tiny)
        axes = tuple(range(shares.ndim, gradient.ndim))
        self.output_gradient.update_inplace(gradient * np.expand_dims(shares, axes))
        return float(rows.ravel() @ shares.ravel())


def _output_shape(task: TrainingTask, size: int, labels: np.ndarray) -> tuple[int, ...]:
    """Return the shape of the scores of a batch, or of the graph's own loss.

    A size that X decides is that of the labels.
    """
    shape = task.graph.output_type.shape or ()
    if task.objective.loss is None:
        return tuple(dim for dim in shape if isinstance(dim, int))
    rest = (dim if isinstance(dim, int) else labels.shape[axis] for axis, dim in enumerate(shape))
    return (size, *(dim for axis, dim in enumerate(rest) if axis))
