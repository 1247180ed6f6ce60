"""Full-batch training: the objective of all samples and its gradient, for a solver."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto

from ...data.samples import Data
from ...differentiation import gradient_of_loss
from ...exceptions import PluginError, limit_address
from ...runtime.calls import BoundCall
from ...runtime.devices import Device, ort_scalar, ort_value
from ..fusions import fuse_step
from ..fusions.scatter import scatter_rows
from ..graphs.names import OBJECTIVE
from ..graphs.objective import objective_graph
from ..graphs.rescaling import last_weights
from ..graphs.sparse_products import taken_samples, with_sparse_samples
from ..graphs.task import TrainingTask
from ..optimisations.activations import CHUNK_BYTES, MAX_ACTIVATIONS, samples_per_evaluation
from ..optimisations.table_rows import TableRows
from ..steps.compiled import compiled_graph
from .coordinates import Coordinates
from .smoothing import WIDTH, smoothed_objective

__all__ = ["FullBatchStep"]


class FullBatchGraph:
    """The graph from all samples and weights to the objective and the gradients of the weights."""

    def __init__(self, task: TrainingTask, rounded: bool):
        task = task.changed(penalty=task.objective.penalty.without_absolute_values())
        objective = smoothed_objective(task) if rounded else objective_graph(task)
        self.model: ModelProto = gradient_of_loss(
            objective, OBJECTIVE, task.graph.weights, task.gradient, origin=task.graph.origin
        )
        if task.graph.sparse:
            self.model = fuse_step(self.model, [scatter_rows])
        names = [value.name for value in self.model.graph.output]
        self.gradients = names[-len(task.graph.weights) :]


class FullBatchStep:
    """The objective of all samples and its gradient, in one call of onnxruntime.

    The penalty must be smooth or have kinks that can be rounded; batches must not update running statistics.
    """

    #: Approximate bytes of sparse samples, and maximum bytes of activations, of one call.
    chunk_bytes, max_activations = CHUNK_BYTES, MAX_ACTIVATIONS

    def __init__(self, task: TrainingTask, device: Device, n_jobs: int | None = None):
        solver, penalty = task.update.learning_rate, task.objective.penalty
        left = penalty.without_absolute_values() if solver.takes_absolute_values else penalty
        if not all(part.smooth or part.roundable for part in left.parts()):
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
        self._rounds_penalty = not left.smooth
        #: Standard deviation of the labels, if scores have their scale.
        self.label_spread = 1.0
        self._all: Data = None  # type: ignore[assignment]
        self._data: Data = None  # type: ignore[assignment]
        self._rows, self._first = TableRows({}, {}), dict[str, np.ndarray]()
        self._coordinates: Coordinates | None = None
        self.task = self._trained = task
        self.device = device
        self._n_jobs = n_jobs
        self._compiled(rounded=False)

    def _compiled(self, rounded: bool) -> tuple[FullBatchGraph, Any]:
        key = ("all samples", rounded)
        task, n_jobs = self._trained, 1 if self._trained.graph.sparse else self._n_jobs
        return compiled_graph(task, key, self.device, n_jobs, lambda: FullBatchGraph(task, rounded))

    @property
    def has_kinks(self) -> bool:
        """Whether the objective, without absolute values of weights, is not differentiable everywhere."""
        loss = self.task.objective.loss
        return self._rounds_penalty or (loss is not None and loss.kinks)

    @property
    def lower(self) -> np.ndarray | None:
        """Lower bounds of the vector of all weights, or None."""
        if not self.task.update.not_negative:
            return None
        names, not_negative = self.task.graph.weights, self.task.update.not_negative
        return self._per_element([0.0 if name in not_negative else -np.inf for name in names])

    @property
    def absolute(self) -> np.ndarray | None:
        """Factors of the absolute values of weights, which :meth:`evaluate` omits; None if there are none."""
        graph, penalty = self.task.graph, self.task.objective.penalty
        factors = [
            sum(part.absolute_factor for part in penalty.parts_for(is_intercept, name))
            for name, is_intercept in graph.intercepts.items()
        ]
        return self._per_element(factors) if any(factors) else None

    @property
    def anchor(self) -> dict[str, np.ndarray]:
        """Centers of the absolute values: zero, or the initial weights; not both for one weight."""
        found = {}
        for name, is_intercept in self.task.graph.intercepts.items():
            parts = self.task.objective.penalty.parts_for(is_intercept, name)
            anchors = [part.anchor for part in parts if part.absolute_factor]
            if len({anchor is None for anchor in anchors}) > 1:
                raise PluginError(
                    f"The penalties of weight {name!r} have absolute values around zero and around its "
                    "initial value, which a solver cannot combine. Use one of them."
                )
            zero = np.zeros(self._shapes[name])
            found[name] = zero if not anchors or anchors[0] is None else anchors[0]
        return found

    def units(self) -> np.ndarray:
        """Return the unit of each element: the scale of the labels for weights of the last layer, else 1."""
        last = last_weights(self.task)
        return self._per_element([self.label_spread if n in last else 1.0 for n in self.task.graph.weights])

    @property
    def intercepts(self) -> np.ndarray:
        """Whether each element of the vector of all weights belongs to an intercept."""
        return self._per_element(list(self.task.graph.intercepts.values()))

    def _per_element(self, values: list[Any]) -> np.ndarray:
        """Return a value per weight, repeated for its elements."""
        return np.repeat(values, [int(np.prod(self._shapes[name])) for name in self.task.graph.weights])

    def coordinates(self) -> Coordinates:
        """Return coordinates that standardise the features of the bound data."""
        if self._coordinates is None:
            self._coordinates = Coordinates(self.task, self._data, self._shapes)
        return self._coordinates

    def graphs(self) -> dict[str, ModelProto]:
        """Return the graph of objective and gradients."""
        return {"objective": self._compiled(rounded=False)[0].model}

    def start(self, data: Data, weights: dict[str, np.ndarray], whole: bool = False) -> None:
        """Bind data, weights and results.

        Unless ``whole``, the vector of all weights leaves out the rows of tables that the samples do not look
        up, such as the values of leaves that they do not reach: these rows have no gradient, and stay as they
        are.
        """
        if data is not self._all:  # shared by successive trainings on the same samples
            self._coordinates = None
            self._rows = TableRows({}, {}) if whole else TableRows.of(self.task, data, weights)
            self._data = self._rows.data(self.task, data, weights)
        self._all, self._first, weights = data, weights, self._rows.of_weights(weights)
        task, data = self._rows.task(self.task), self._data
        reads_entries = data.is_sparse and self.device.reads_entries
        self._trained = with_sparse_samples(task, data) if reads_entries else task
        self._weights = {name: ort_value(np.array(array), self.device) for name, array in weights.items()}
        self._shapes = {name: array.shape for name, array in weights.items()}
        self._objective, self._width = (ort_scalar(self.task.graph.dtype, self.device) for _ in range(2))
        self._gradients = [ort_value(np.zeros_like(weights[n]), self.device) for n in self.task.graph.weights]
        self._calls: dict[bool, BoundCall] = {}
        self._size = samples_per_evaluation(self._trained, data, self.chunk_bytes, self.max_activations)
        self._whole = self._values(slice(0, len(data))) if self._size is None else None

    def _call(self, rounded: bool) -> BoundCall:
        """Return the call of a graph on weights and results."""
        if rounded not in self._calls:
            graph, session = self._compiled(rounded)
            results = dict(zip(graph.gradients, self._gradients, strict=True))
            results[OBJECTIVE] = self._objective
            self._calls[rounded] = BoundCall(session, {**self._weights, WIDTH: self._width}, results)
        return self._calls[rounded]

    def release(self) -> None:
        """Release data and weights; keep graphs and sessions."""
        self._all = self._data = self._whole = self._coordinates = None  # type: ignore[assignment]
        self._first = {}
        self._weights, self._gradients, self._calls = {}, [], {}

    def _values(self, samples: slice) -> dict[str, Any]:
        """Return some samples as inputs of the graph."""
        columns, numbers = self.task.columns(self._data), np.arange(samples.start, samples.stop)
        if self._data.is_sparse:
            arrays = taken_samples(self._trained, columns.items(), numbers, len(numbers))
        else:
            arrays = {name: array[samples] for name, array in columns.items()}
        return {name: ort_value(array, self.device) for name, array in arrays.items()}

    def _parts(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield chunks of samples, or all of them, with their weight in the objective."""
        if self._whole is not None:
            yield 1.0, self._whole
            return
        n_samples = len(self._data)
        weights = self._data.weight_per_sample
        counts = np.ones(n_samples) if weights is None else weights.astype(np.float64)
        for start in range(0, n_samples, self._size or n_samples):
            samples = slice(start, min(start + (self._size or n_samples), n_samples))
            if counts[samples].any():
                yield counts[samples].sum() / counts.sum(), self._values(samples)

    def evaluate(self, vector: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the objective of all samples and its gradient, in float64.

        Absolute values of weights are omitted; other kinks are rounded if ``width`` is positive.
        """
        call = self._call(rounded=width > 0)
        for name, array in self._unpacked(vector).items():
            self._weights[name].update_inplace(array)
        self._width.update_inplace(np.array(width, dtype=self.task.graph.dtype))
        value, gradient = 0.0, np.zeros_like(vector)
        for share, inputs in self._parts():
            call.bind(inputs)
            call()
            value += share * float(self._objective.numpy())
            parts = [np.ravel(tensor.numpy()) for tensor in self._gradients]
            gradient += share * np.concatenate(parts).astype(np.float64)
        return value, gradient

    def pack(self, weights: dict[str, np.ndarray]) -> np.ndarray:
        """Return all weights as one vector in float64, in the order of the task's weights."""
        weights = self._rows.of_weights(weights)
        return np.concatenate([np.ravel(weights[n]).astype(np.float64) for n in self.task.graph.weights])

    def unpack(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights of a vector, in the type of the graph."""
        return self._rows.whole(self._unpacked(vector), self._first)

    def _unpacked(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights of a vector, with the rows of tables that it has."""
        with np.errstate(over="ignore"):  # an overflow makes the objective non-finite, too
            vector = vector.astype(self.task.graph.dtype)
        weights, start = {}, 0
        for name in self.task.graph.weights:
            stop = start + math.prod(self._shapes[name])
            weights[name], start = vector[start:stop].reshape(self._shapes[name]), stop
        return weights
