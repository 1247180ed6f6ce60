"""A batch as four calls: forward, loss, backward and update."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.samples import Data
from ...graphs import extract_model, make_initializers_of
from ...graphs.editing import with_fields
from ...runtime.buffers import BatchBuffer, CarriedBuffers
from ...runtime.calls import BoundCall
from ...runtime.devices import ort_scalar, ort_value
from ...runtime.sessions import make_session, session_options
from ..graphs.names import OBJECTIVE, RATE, SAMPLE_WEIGHT
from ..graphs.task import TrainingTask
from .base_step import BaseStep
from .forward_backward import OrtGradientForwardBackward
from .two_call_graphs import loss_gradient_graph, update_graph

__all__ = ["FourCalls"]


class FourCalls:
    """Graphs and sessions of a step with four calls per batch; the loss may be a Python function."""

    def __init__(self, step: BaseStep, size: int | str):
        self.step, task = step, step.task
        n_jobs = step.threads(size)
        update = update_graph(task)
        self.penalised = update.value is not None
        self.carried = update.carried
        self._models = {"update": update.model}
        self.update_session = make_session(update.model, step.device, n_jobs, spins=False)
        self.loss_session: Any = None
        if task.objective.loss is not None and not task.objective.loss.in_python:
            self._models["loss"] = loss_gradient_graph(task)
            self.loss_session = make_session(self._models["loss"], step.device, n_jobs, spins=False)
        self.statistics_session: Any = None
        results = list(task.graph.statistics.values())
        if results:
            self._models["statistics"] = extract_model(task.graph.model, results)
            self.statistics_session = make_session(
                self._models["statistics"], step.device, n_jobs, spins=False
            )
        model = make_initializers_of(task.graph.model, task.graph.weights)
        self.function = OrtGradientForwardBackward(
            with_fields(model, output=model.graph.output[:1]),
            weights_to_train=task.graph.weights,
            sess_options=session_options(n_jobs, spins=False),
            providers=step.device,
            gradient=task.gradient,
            input_gradients=False,
        ).new_instance()

    def bind(self, data: Data, size: int, buffers: CarriedBuffers, rate: Any) -> FourCallBatch:
        """Return the bound calls for batches of a size."""
        return FourCallBatch(self, data, size, buffers, rate)

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graphs of forward, backward, loss and update."""
        return {**self.function.owner.models_, **self._models}


class FourCallBatch:
    """Buffers and bindings of the calls for batches of a size."""

    def __init__(self, calls: FourCalls, data: Data, size: int, buffers: CarriedBuffers, rate: Any):
        task, device = calls.step.task, calls.step.device
        self.calls, self.step, self.rate = calls, calls.step, rate
        columns = task.columns(data)
        self.columns = {name: (BatchBuffer(a, size, device), a) for name, a in columns.items()}
        shape = _output_shape(task, size, data.y)
        self.output = ort_value(np.zeros(shape, dtype=task.graph.dtype), device)
        self.output_gradient = ort_value(np.ones(shape, dtype=task.graph.dtype), device)
        self.objective, self.penalty = (ort_scalar(task.graph.dtype, device) for _ in range(2))
        self.gradients = {
            name: ort_value(np.zeros(value.shape(), dtype=task.graph.dtype), device)
            for name, value in buffers.weights(0).items()
        }
        self._vectors(buffers)
        values = {name: buffer.value for name, (buffer, _) in self.columns.items()}
        output = task.graph.output
        values |= {output: self.output, f"{output}_grad": self.output_gradient, RATE: self.rate}
        values |= {f"{name}_grad": value for name, value in self.gradients.items()}
        self.loss_call = self._bound(calls.loss_session, values, {OBJECTIVE: self.objective})
        self.update_calls, self.statistics_calls = [], []
        for copy in range(buffers.COPIES):
            read, written = buffers.between(copy)
            results = {OBJECTIVE: self.penalty, **written}
            self.update_calls.append(self._bound(calls.update_session, values | read, results))
            weights = buffers.weights((copy + 1) % buffers.COPIES)
            results = {result: weights[name] for name, result in task.graph.statistics.items()}
            self.statistics_calls.append(self._bound(calls.statistics_session, values | read, results))

    def _vectors(self, buffers: CarriedBuffers) -> None:
        function, names = self.calls.function, self.step.task.graph.weights
        inputs = [self.columns[name][0].value for name in function.owner.input_names]
        self.feeds = []
        for copy in range(buffers.COPIES):
            weights = buffers.weights(copy)
            self.feeds.append(function.input_to_ort([*inputs, *(weights[name] for name in names)]))
        self.outputs = function.input_to_ort([self.output])
        self.output_gradients = function.input_to_ort([self.output_gradient])
        self.gradient_vector = function.input_to_ort([self.gradients[name] for name in names])

    def rebind(self, data: Data, buffers: CarriedBuffers) -> None:
        """Read batches from other samples."""
        columns = self.step.task.columns(data)
        self.columns = {name: (buffer, columns[name]) for name, (buffer, _) in self.columns.items()}

    def _bound(self, session: Any, values: dict[str, Any], results: dict[str, Any]) -> Any:
        """Return a bound call of a session; None without a session."""
        return None if session is None else BoundCall(session, values, results).function

    def run(self, rows: np.ndarray, copy: int) -> float:
        """Update on a batch and return its objective."""
        calls, loss = self.calls, self.step.task.objective.loss
        for buffer, array in self.columns.values():
            buffer.load(array, rows)
        calls.function.forward(self.feeds[copy], training=True, forward_outputs_cache=self.outputs)
        if self.loss_call is not None:
            self.loss_call()
            value = float(self.objective.numpy())
        elif loss is None:
            value = float(np.sum(self.output.numpy()))
        else:
            value = self._evaluate(loss)
        calls.function.backward(self.output_gradients, backward_outputs_cache=self.gradient_vector)
        self.update_calls[copy]()
        if calls.statistics_session is not None:  # the update copies them unchanged
            self.statistics_calls[copy]()
        return value + float(self.penalty.numpy()) if calls.penalised else value

    def _evaluate(self, loss: Any) -> float:
        """Return the objective of a Python loss, and write its gradient for backward."""
        task = self.step.task
        labels = self.columns[task.objective.label][0].value.numpy()
        # copies, since the function may overwrite its arguments, and backward reads the outputs
        predicted = self.output.numpy()
        rows, gradient = loss.evaluate(labels.copy(), predicted.copy())
        if self.step.checks_loss and hasattr(loss, "check_batch"):
            loss.check_batch(labels, predicted, rows, gradient)
            self.step.checks_loss = False
        if task.objective.weighted:
            weights = self.columns[SAMPLE_WEIGHT][0].value.numpy()
        else:
            weights = np.ones_like(rows)
        # zero if all weights are zero, as in mean_loss
        shares = weights / max(weights.sum(), np.finfo(rows.dtype).tiny)
        axes = tuple(range(shares.ndim, gradient.ndim))
        self.output_gradient.update_inplace(gradient * np.expand_dims(shares, axes))
        return float(rows.ravel() @ shares.ravel())


def _output_shape(task: TrainingTask, size: int, labels: np.ndarray) -> tuple[int, ...]:
    """Return the shape of the scores or of the loss of the graph; dynamic axes are those of the labels."""
    shape = task.graph.output_type.shape or ()
    if task.objective.loss is None:
        return tuple(dim for dim in shape if isinstance(dim, int))
    rest = (dim if isinstance(dim, int) else labels.shape[axis] for axis, dim in enumerate(shape))
    return (size, *(dim for axis, dim in enumerate(rest) if axis))
