"""Run the trained model: predictions, scores and losses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto
from scipy.sparse import issparse

from ..data.columns import Columns
from ..data.source_features import SourceFeatures
from ..exceptions import ExecutionError
from ..graphs import extract_model, initializer_arrays, make_inputs_of
from ..models.trees.ordering import KEY
from ..onnx_files.running_statistics import for_evaluation
from ..onnx_files.scores import APPENDED
from ..problem.configuration import Runtime
from ..problem.problem import Problem
from ..runtime.checked_sessions import open_session
from ..runtime.errors import runtime_errors
from ..runtime.forks import PerProcess
from ..runtime.providers import CPU
from ..training.graphs.names import SAMPLE_WEIGHT
from ..training.graphs.objective import sample_loss_graph
from ..training.graphs.sparse_products import (
    entry_arrays,
    product_widths,
    sparse_features,
    stays_sparse,
    with_sparse_products,
)
from .method_outputs import MethodOutputs, identity, scores_of
from .sample_chunks import BoundedCall, by_chunks
from .tree_forms import CHUNK, MANY, TreeForms

if TYPE_CHECKING:
    from ..training.graphs.task import Objective

__all__ = ["Inference", "LiveInference"]


def _described(model: ModelProto, name: str) -> str:
    """Return the beginning of a message about an output, or about scores computed from one of the file."""
    producers = {made: node for node in model.graph.node for made in node.output}
    origin = name
    while origin.startswith(APPENDED) and origin in producers:
        origin = producers[origin].input[0]
    return f"Output {name!r} of the model has" if origin == name else f"The scores from {origin!r} have"


class Inference:
    """Sessions of a trained model with stable names, opened when they are first needed."""

    weights: Mapping[str, np.ndarray] | None = None

    def __init__(self, problem: Problem, model: ModelProto, runtime: Runtime, fused: bool = True) -> None:
        self.problem = problem
        self.model = for_evaluation(model)
        self.runtime = runtime
        self.fused = fused and runtime.device.provider == CPU
        self._calls = PerProcess()
        self.trees = TreeForms(problem.trainable.fused if self.fused else (), runtime.n_jobs)

    def _run(self, output: str, samples: Any) -> np.ndarray:
        """Return an output of the model, with one entry for each sample."""
        return self._finished((output,), identity, samples)

    def _finished(self, outputs: Sequence[str], finish: Callable[..., Any], samples: Any) -> Any:
        """Apply a function to outputs of the model, chunk by chunk."""

        def run(part: Any) -> Any:
            return finish(*self._run_chunk(outputs, part, form))

        form = self.trees.choose(samples, ("", *outputs) in self._calls.values)
        if type(samples) is np.ndarray and len(samples) == 1:  # chunking takes longer than a small model
            return run(samples)

        def size(part: Any) -> int:
            found = self._call_on(part, *outputs, form=form).n_samples(self._inputs(part))
            return min(found, CHUNK) if form else found

        return by_chunks(run, size, samples)

    @runtime_errors()
    def _run_chunk(self, outputs: Sequence[str], samples: Any, form: str) -> list[np.ndarray]:
        session, n_samples = self._call_on(samples, *outputs, form=form).session, samples.shape[0]
        order = None if form else self._order(samples)
        ordered = samples if order is None else samples[order]
        found = session.run(list(outputs), self._feeds(ordered, session))
        for index, (name, array) in enumerate(zip(outputs, found, strict=True)):
            if np.shape(array)[:1] != (n_samples,):
                if np.size(array) != n_samples:
                    raise ExecutionError(
                        f"{_described(self.model, name)} the shape {np.shape(array)} for {n_samples} "
                        "samples, not one for each sample. Export the model with samples on the first axis."
                    )
                found[index] = np.reshape(array, n_samples)
            if order is not None:
                found[index] = given = np.empty_like(found[index])
                given[order] = np.reshape(array, given.shape)
        return found

    def _order(self, samples: Any) -> np.ndarray | None:
        """Return the order in which trees read many samples fastest; None if they are read as given."""
        if not self.fused or type(samples) is not np.ndarray or len(samples) < MANY:
            return None
        calls = self._calls.values
        if "order" not in calls:
            graph = self.trees.order_graph(self.model)
            calls["order"] = None if graph is None else self._session(graph)
        session = calls["order"]
        return None if session is None else np.argsort(session.run([KEY], self._inputs(samples))[0].ravel())

    @runtime_errors()
    def _call_of(self, *outputs: str, form: str = "") -> BoundedCall:
        """Return the session that computes outputs, opened once."""
        calls, key = self._calls.values, (form, *outputs)
        if key not in calls:
            part = self._part(*outputs, fused=form or self.fused)
            calls[key] = BoundedCall(self._session(part), part)
            if not form:
                calls.pop(("levels", *outputs), None)
        return calls[key]

    @runtime_errors()
    def _call_on(self, samples: Any, *outputs: str, form: str = "") -> BoundedCall:
        """Return the session that computes outputs, from sparse entries if samples are sparse and it can."""
        if not stays_sparse(samples):
            return self._call_of(*outputs, form=form)
        calls, key = self._calls.values, ("entries", *outputs)
        if key not in calls:
            calls[key] = self._call_on_entries(self._part(*outputs, fused=False)) or self._call_of(*outputs)
        return calls[key]

    def _call_on_entries(self, graph: ModelProto) -> BoundedCall | None:
        """Return a session that takes sparse entries; None if the graph does more than multiply X."""
        device, names = self.runtime.device, [self.problem.trainable.input_name]
        if not device.reads_entries or not sparse_features(graph, names):
            return None
        session = open_session(with_sparse_products(graph, names, "samples"), device, 1)
        return BoundedCall(session, graph, product_widths(graph, names))

    def _session(self, graph: ModelProto) -> Any:
        return open_session(graph, self.runtime.device, self.runtime.n_jobs)

    def _part(self, *outputs: str, fused: bool | str) -> ModelProto:
        part = extract_model(self.model, outputs)
        if not fused:
            return part
        return self.problem.trainable.for_inference(part, fused, True, self.trees.n_threads)

    def _inputs(self, samples: Any) -> dict[str, Any]:
        """Return samples by the name of their input."""
        return (
            samples.arrays if isinstance(samples, Columns) else {self.problem.trainable.input_name: samples}
        )

    def _feeds(self, samples: Any, session: Any) -> dict[str, np.ndarray]:
        """Return the inputs of a session for samples."""
        names = [value.name for value in session.get_inputs()]
        if isinstance(samples, Columns):
            return samples.feeds([name for name in names if name in samples.arrays])
        if not issparse(samples):
            return self._inputs(samples)
        if self.problem.trainable.input_name in names:
            return self._inputs(samples.toarray())
        arrays = entry_arrays(
            self.problem.trainable.input_name, samples, np.arange(samples.shape[0]), samples.shape[0]
        )
        return {name: array for name, array in arrays.items() if name in names}

    def compute(self, method: str, samples: Any) -> Any:
        """Return the result of one of ``METHODS``."""
        outputs, finish = MethodOutputs(self.problem, self.model).plan(method)
        return self._finished(outputs, finish, samples)

    def predictor(self, method: str) -> Callable[[np.ndarray], Any]:
        """Return a method as a function of arrays without validation."""
        outputs, finish = MethodOutputs(self.problem, self.model).plan(method)
        session = self._call_of(*outputs).session
        run, names, name = session._sess.run, list(outputs), self.problem.trainable.input_name

        def compute(X: np.ndarray) -> Any:
            try:
                return finish(*run(names, {name: X}, None))
            except Exception:
                with runtime_errors():
                    raise

        return compute

    def predict(self, samples: Any) -> Any:
        """Return classes, cluster indices, or values in the shape of y."""
        return self.compute("predict", samples)

    def predict_proba(self, samples: Any) -> Any:
        """Return the probabilities, of shape (n, n_classes), or one such matrix per output."""
        return self.compute("predict_proba", samples)

    def scores(self, samples: Any) -> np.ndarray:
        """Return the raw scores that the loss compares with labels."""
        return self._run(scores_of(self.problem).score, samples)

    def decision_function(self, samples: Any) -> np.ndarray:
        """Return the raw scores, of shape (n, k)."""
        return self.compute("decision_function", samples)

    def transform(self, samples: Any) -> np.ndarray:
        """Return the transformed samples."""
        return self.compute("transform", samples)

    def score_samples(self, samples: Any) -> np.ndarray:
        """Return the log-likelihood of each sample, of shape (n,)."""
        return self._run(str(scores_of(self.problem).likelihood), samples).ravel()

    def losses(self, samples: Any, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each sample, of shape (n,), or of its positions, of shape (n, positions)."""

        def run(part: np.ndarray, expected: np.ndarray) -> np.ndarray:
            if self.problem.loss is not None:
                return self._loss_run(part, expected)
            numbers = range(part.shape[0])
            return np.array([np.sum(self._loss_run(part[i : i + 1], expected[i : i + 1])) for i in numbers])

        return by_chunks(
            run, lambda part: self._loss_call(part)[0].n_samples(self._inputs(part)), samples, labels
        )

    def mean_loss(self, samples: Any, labels: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return the mean loss; a graph with its own loss computes it from all samples at once."""
        if self.problem.loss is None:
            samples = (
                samples.toarray() if isinstance(samples, SourceFeatures) or issparse(samples) else samples
            )
            return float(np.sum(self._loss_run(samples, labels, sample_weight)))
        return float(np.average(self.losses(samples, labels).astype(np.float64), weights=sample_weight))

    def _loss_call(self, samples: Any) -> tuple[BoundedCall, Objective, Mapping[str, np.ndarray]]:
        """Return the session that computes losses, the objective, and the weights of the model."""
        calls, key = self._calls.values, ("losses", stays_sparse(samples))
        if key not in calls:
            task = self.problem.task(False, evaluates=True)
            loss = task.objective.loss
            whole = loss is None or loss.in_python
            graph = task.graph.model if whole else sample_loss_graph(task)[0]
            own = initializer_arrays(self.model, task.graph.weights)
            on_entries = self._call_on_entries(graph) if key[1] else None
            calls[key] = on_entries or BoundedCall(self._session(graph), graph), task.objective, own
        return calls[key]

    @runtime_errors()
    def _loss_run(self, samples: Any, labels: Any, sample_weight: Any = None) -> np.ndarray:
        call, objective, own = self._loss_call(samples)
        session = call.session
        label, loss = objective.label, objective.loss
        feeds = {**self._feeds(samples, session), label: labels, **(self.weights or own)}
        own_loss = self.problem.trainable.own_loss
        if own_loss is not None and own_loss.row_weight is not None:
            ones = np.ones(len(labels), dtype=self.problem.dtype)
            feeds[SAMPLE_WEIGHT] = ones if sample_weight is None else sample_weight
        if loss is not None and loss.in_python:
            names = {value.name for value in session.get_inputs()}
            feeds = {name: value for name, value in feeds.items() if name in names}
            return loss.evaluate(labels.copy(), session.run(None, feeds)[0])[0]  # it may overwrite labels
        return session.run(None, feeds)[0]


class LiveInference(Inference):
    """Sessions that take the trained weights as inputs, to evaluate a model during its training."""

    weights: Mapping[str, np.ndarray]

    def __init__(self, problem: Problem, model: ModelProto, runtime: Runtime) -> None:
        super().__init__(problem, model, runtime, fused=False)

    def _part(self, *outputs: str, fused: bool | str) -> ModelProto:
        part = super()._part(*outputs, fused=fused)
        names = {tensor.name for tensor in part.graph.initializer}
        return make_inputs_of(part, [n for n in self.problem.trainable.trained if n in names])

    def _feeds(self, samples: Any, session: Any) -> dict[str, np.ndarray]:
        names = {value.name for value in session.get_inputs()}
        live = {name: array for name, array in self.weights.items() if name in names}
        return {**super()._feeds(samples, session), **live}

    def with_weights(self, weights: Mapping[str, np.ndarray]) -> LiveInference:
        """Return a copy with other weights and the same sessions."""
        other = copy.copy(self)
        other.weights = weights
        return other
