"""The objective of all samples and its gradient, as a training step for solvers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.samples import Data
from ...differentiation import gradient_of_loss
from ...exceptions import PluginError, limit_address
from ...penalties import BasePenalty
from ...runtime.buffers import Carried, CarriedBuffers
from ...runtime.calls import BoundCall
from ...runtime.devices import ort_scalar, ort_value
from ...runtime.providers import CPU
from ...runtime.sessions import n_threads
from ..fusions import fuse_step
from ..fusions.tables import gather_scalars, scatter_rows
from ..graphs.names import OBJECTIVE
from ..graphs.objective import objective_graph
from ..graphs.sparse_products import taken_samples, with_sparse_samples
from ..graphs.step_graphs import StepGraph
from ..graphs.task import TrainingTask
from ..optimisations.activations import CHUNK_BYTES, MAX_ACTIVATIONS, samples_per_evaluation
from ..steps.base_step import BaseStep
from ..steps.compiled import compiled_graph
from .linear_maps import BoundMap, bound_maps
from .smoothing import WIDTH, smoothed_objective

__all__ = ["GradientStep", "left_penalty"]


def gradient_graph(
    task: TrainingTask, carried: list[Carried], maps: list[str], rounded: bool, one_thread: bool
) -> StepGraph:
    """Return the graph from samples and weights to the objective and the gradients of weights and maps."""
    task = task.changed(penalty=task.objective.penalty.without_absolute_values())
    objective = smoothed_objective(task) if rounded else objective_graph(task)
    names = [*task.graph.weights, *maps]
    model = gradient_of_loss(objective, OBJECTIVE, names, task.gradient, origin=task.graph.origin)
    model = fuse_step(model, [gather_scalars, scatter_rows] if one_thread else [gather_scalars])
    return StepGraph(model, OBJECTIVE, carried)


class GradientStep(BaseStep):
    """The objective of all samples and its gradient, in one call, or in several to save memory.

    It writes the gradient of a weight where other steps write the new weight, for a solver. The penalty must
    be smooth or have kinks that can be rounded; batches must not update running statistics.
    """

    #: Approximate bytes of sparse samples, and maximum bytes of activations, of one call.
    chunk_bytes, max_activations = CHUNK_BYTES, MAX_ACTIVATIONS
    carries_vectors = True

    _shapes: list[tuple[int, ...]] | None  # of the samples for which the number per call is known
    _mapped: Data | None  # samples of the linear maps

    def build(self) -> list[Carried]:
        """Return the weights, with their gradients as results."""
        _check_task(self.task)
        self._trained, self._shapes = self.task, None
        self._maps, self._mapped = list[BoundMap](), None
        return [Carried(name, None, name, f"{name}_grad") for name in self.task.graph.weights]

    def _compiled(self, rounded: bool) -> tuple[StepGraph, Any]:
        task, n_jobs = self._trained, 1 if self._trained.graph.sparse else self.n_jobs
        maps, one_thread = [bound.map.name for bound in self._maps], n_threads(n_jobs) == 1
        build = partial(gradient_graph, task, self.carried, maps, rounded, one_thread)
        return compiled_graph(task, ("all samples", rounded), self.device, n_jobs, build)

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graph of objective and gradients."""
        return {"objective": self._compiled(rounded=False)[0].model}

    def start(self, data: Data, sizes: list[int], weights: Any, *options: Any) -> CarriedBuffers:
        """Bind the samples, unless they are bound: each evaluation writes the weights."""
        if data is not self._data or list(map(np.shape, weights.values())) != self._buffers.shapes():
            super().start(data, sizes, weights, *options)
        return self._buffers

    def bind(self, data: Data, sizes: list[int], buffers: CarriedBuffers) -> None:
        """Keep the tensors of weights, gradients and, if they fit, samples; the first call binds them."""
        self._data, self._buffers, self._calls = data, buffers, dict[bool, BoundCall]()
        self._objective, self._width = (ort_scalar(self.task.graph.dtype, self.device) for _ in range(2))
        if self.device.provider == CPU:
            if data is not self._mapped:  # several trainings on the same samples share the matrices
                sizes_of = dict(zip(self.task.graph.weights, buffers.shapes(), strict=True))
                self._trained, self._maps = bound_maps(self.task, data, sizes_of, self.max_activations)
                self._mapped = data
        if self._maps:
            self._shapes = self._size = None
            return
        reads_entries = data.is_sparse and self.device.reads_entries
        self._trained = with_sparse_samples(self.task, data) if reads_entries else self.task
        shapes = [array.shape for array in self.task.inputs(data).values()]
        if data.is_sparse or shapes != self._shapes:  # types are inferred once for the starts on the samples
            self._shapes = shapes
            self._size = samples_per_evaluation(self._trained, data, self.chunk_bytes, self.max_activations)

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        self._data = self._buffers = self._mapped = None  # type: ignore[assignment]
        self._calls, self._maps = {}, []

    def _call(self, rounded: bool) -> BoundCall:
        """Return the call of a graph on weights, results and, unless they are divided, samples."""
        if rounded not in self._calls:
            read, written = self._buffers.between(self._buffers.current)
            values = {} if self._size else self._values(slice(0, len(self._data)))
            results = {**written, OBJECTIVE: self._objective}
            for bound in self._maps:
                values[bound.map.name] = ort_value(bound.result, self.device)
                results[f"{bound.map.name}_grad"] = ort_value(bound.slopes, self.device)
            session = self._compiled(rounded)[1]
            self._calls[rounded] = BoundCall(session, {**values, **read, WIDTH: self._width}, results)
        return self._calls[rounded]

    def _values(self, samples: slice) -> dict[str, Any]:
        """Return some samples as inputs of the graph."""
        columns, numbers = self.task.columns(self._data), np.arange(samples.start, samples.stop)
        for name in self.task.graph.features.keys() - self._trained.graph.features:
            del columns[name]
        if self._data.is_sparse:
            arrays = taken_samples(self._trained, columns.items(), numbers, len(numbers))
        else:
            arrays = {name: array[samples] for name, array in columns.items()}
        return {name: ort_value(array, self.device) for name, array in arrays.items()}

    def _shares(self, call: BoundCall) -> Iterator[float]:
        """Bind chunks of samples to a call, or leave all of them, and yield their weight in the objective."""
        if not self._size:
            yield 1.0
            return
        n_samples, weights = len(self._data), self._data.weight_per_sample
        counts = np.ones(n_samples) if weights is None else weights.astype(np.float64)
        for start in range(0, n_samples, self._size):
            samples = slice(start, min(start + self._size, n_samples))
            if counts[samples].any():
                call.bind(self._values(samples))
                yield counts[samples].sum() / counts.sum()

    def evaluate(self, weights: Mapping[str, np.ndarray], width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the objective of all samples and its gradient, in float64."""
        arrays = [np.ravel(weights[name]) for name in self.task.graph.weights]
        return self.evaluate_vector(np.concatenate(arrays), width)

    def evaluate_vector(self, vector: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return objective and gradient at the vector of all weights."""
        call, own = self._call(rounded=width > 0), self._buffers.load(vector)
        if width:
            self._width.update_inplace(np.array(width, dtype=self.task.graph.dtype))
        value, gradient = 0.0, np.zeros(len(own))
        for bound in self._maps:
            bound.compute(own)
        for share in self._shares(call):
            call.function()
            value += share * float(self._objective.numpy())
            gradient += share * self._buffers.written()
        for bound in self._maps:
            gradient[bound.place] += bound.gradient()
        return value, gradient

    def trial(self, *arguments: Any) -> tuple[dict, dict]:
        """Return zeros, and objective and gradient at perturbed weights, since a minimum has none."""
        self.start(*arguments)
        random, perturbed = np.random.default_rng(0), {}
        for name, array in arguments[2].items():
            change = 0.1 * random.standard_normal(array.shape) * (1 + np.abs(array))
            perturbed[name] = np.asarray(array + change, dtype=array.dtype)
        value, gradient = self.evaluate(perturbed)
        found = {"objective": np.array(value), "gradient": gradient}
        return {name: np.zeros_like(array) for name, array in found.items()}, found


def left_penalty(task: TrainingTask) -> BasePenalty:
    """Return the penalty without the absolute values that the solver itself takes into account."""
    penalty = task.objective.penalty
    return penalty.without_absolute_values() if task.update.learning_rate.takes_absolute_values else penalty


def _check_task(task: TrainingTask) -> None:
    """Raise a PluginError if the objective is not smooth, or the model updates running statistics."""
    solver, penalty = task.update.learning_rate, task.objective.penalty
    if not all(part.smooth or part.roundable for part in left_penalty(task).parts()):
        raise PluginError(
            f"{type(solver).__name__} needs a smooth objective, but {penalty!r} is not smooth. Use an l2 "
            f"penalty, or another learning rate.{limit_address('solvers-and-penalties')}"
        )
    if task.graph.statistics:
        raise PluginError(
            f"{type(solver).__name__} uses all samples at once, but the model has a BatchNormalization "
            "in training mode, whose running statistics are updated for each batch. Use another learning "
            "rate, such as LearningRateAdam, or set training_mode=0 in the file."
            f"{limit_address('running-statistics')}"
        )
