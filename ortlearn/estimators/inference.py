"""Run the trained model: predictions, scores and losses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto
from scipy.sparse import csr_matrix, issparse
from scipy.special import expit, softmax

from ..exceptions import ConversionError, ExecutionError
from ..graphs import extract_model, initializer_arrays, make_inputs_of, runtime_errors
from ..training import Columns, make_session
from ..training.buffers import row_bytes
from ..training.forks import PerProcess
from ..training.hoisting import CHUNK_BYTES
from ..training.step_graphs import SAMPLE_WEIGHT, row_loss_graph
from .configuration import Runtime
from .problem import Problem
from .source_rows import SourceRows

if TYPE_CHECKING:
    from ..models import Scores

__all__ = ["Inference", "LiveInference"]

#: Rows of a chunk where inputs are columns: a text may become thousands of numbers.
ROWS_OF_COLUMNS = 4096


class Inference:
    """Sessions on a trained model, made when they are first needed.

    Parameters
    ----------
    problem : Problem
        What was trained.
    model : onnx.ModelProto
        Trained model, weights under stable names.
    runtime : Runtime
        Where it runs.

    Attributes
    ----------
    weights : mapping of str to ndarray or None
        Weights to run with, by stable name; None for those of the model.
    """

    weights: Mapping[str, np.ndarray] | None = None

    def __init__(self, problem: Problem, model: ModelProto, runtime: Runtime):
        self.problem = problem
        self.model = model
        self.runtime = runtime
        self._sessions = PerProcess()

    def _run(self, output: str, rows: Any) -> np.ndarray:
        """Return an output of the model, with one row for each sample."""
        return _by_chunks(lambda part: self._run_chunk(output, part), rows)

    @runtime_errors()
    def _run_chunk(self, output: str, rows: Any) -> np.ndarray:
        sessions = self._sessions.values
        if output not in sessions:
            sessions[output] = self._session(self._part(output))
        found = sessions[output].run([output], self._feeds(rows, sessions[output]))[0]
        if np.shape(found)[:1] != (len(rows),):
            if np.size(found) != len(rows):
                raise ExecutionError(
                    f"Output {output!r} of the model has the shape {np.shape(found)} for {len(rows)} "
                    "samples: it must have one row for each."
                )
            found = np.reshape(found, len(rows))
        return found

    def _session(self, graph: ModelProto) -> Any:
        return make_session(graph, self.runtime.device, self.runtime.n_jobs)

    def _part(self, output: str) -> ModelProto:
        return extract_model(self.model, [output])

    def _feeds(self, rows: Any, session: Any) -> dict[str, np.ndarray]:
        """Return rows by the name of the input that takes them."""
        if not isinstance(rows, Columns):
            return {self.problem.trainable.input_name: rows}
        return rows.feeds([value.name for value in session.get_inputs() if value.name in rows.arrays])

    def _head(self) -> Scores:
        head = self.problem.trainable.head
        if head is None:
            raise ConversionError(
                "The graph computes its own loss: which of its outputs are scores is not known."
            )
        return head

    def predict(self, rows: Any) -> Any:
        """Return classes, numbers of clusters, or values in the shape of y."""
        found = self._predict(rows)
        return csr_matrix(found) if self.problem.targets.sparse else found

    def _predict(self, rows: Any) -> np.ndarray:
        head, targets = self.problem.trainable.head, self.problem.targets
        classes = targets.classes
        if head is None:
            values = self._run(self._prediction_output(), rows)
        elif head.positions is not None:
            return head.positions.labels_like(self._predict_positions(head, rows), targets.ndim)
        elif classes is not None and head.task != "multilabel" and not self._has_labels(head):
            return classes[np.argmax(self.predict_proba(rows), axis=1)]
        elif head.task == "multilabel":
            several = self._run(str(head.label), rows).reshape(rows.shape[0], len(head.groups))
            return several.astype(np.result_type(*classes) if isinstance(classes, list) else np.int64)
        elif head.label is not None:
            labels = self._run(head.label, rows).reshape(rows.shape[0])
            return labels if classes is None else labels.astype(classes.dtype)
        else:
            values = self._run(head.prediction or head.score, rows)
        flat = targets.ndim == 1 and values.shape[1:] in ((), (1,))
        return values.reshape(rows.shape[0]) if flat else values

    def _has_labels(self, head: Scores) -> bool:
        """Return whether the graph has the classes, or their numbers where these are the classes."""
        classes = self.problem.targets.classes
        named = head.classes is not None or classes is None
        return head.label is not None and (named or np.array_equal(classes, np.arange(len(classes))))

    def _predict_positions(self, head: Scores, rows: Any) -> np.ndarray:
        """Return what is predicted of each position."""
        if head.task == "regression":
            return self._run(str(head.prediction or head.score), rows)
        positions, classes = head.positions, self.problem.targets.classes
        assert positions is not None
        axis = positions.class_axis
        if self._has_labels(head):
            labels = self._run(str(head.label), rows)
            labels = (
                labels if axis is None or labels.ndim <= len(positions.shape) + 1 else labels.squeeze(axis)
            )
            return labels.astype(classes.dtype)
        return classes[np.argmax(self.predict_proba(rows), axis=-1 if axis is None else axis)]

    def _prediction_output(self) -> str:
        own = self.problem.trainable.own_loss
        names = [v.name for v in self.model.graph.output if own is None or v.name != own.output]
        if not names:
            raise ConversionError("The graph has no output besides its loss: nothing to predict with.")
        return names[0]

    def predict_proba(self, rows: Any) -> Any:
        """Return the probabilities, of shape (n, n_classes), or one such matrix per output."""
        head = self._head()
        if isinstance(head.probabilities, tuple):
            return [self._run(name, rows) for name in head.probabilities]
        values = self._run(str(head.probabilities), rows)
        if head.positions is not None:
            return _probabilities_of_positions(head, values)
        if head.label is None and head.probabilities == head.score:  # a graph that ends with raw scores
            values = expit(values) if values.shape[1] == 1 else softmax(values, axis=1)
        one = values.shape[1] == 1 and head.task == "classification"
        return np.hstack([1 - values, values]) if one else values

    def scores(self, rows: Any) -> np.ndarray:
        """Return what the loss compares with labels."""
        return self._run(self._head().score, rows)

    def decision_function(self, rows: Any) -> np.ndarray:
        """Return the raw scores, of shape (n, k)."""
        head = self._head()
        return self._run(head.decision or head.score, rows)

    def transform(self, rows: Any) -> np.ndarray:
        """Return what a transformer gives."""
        return self._run(str(self._head().transformed), rows)

    def score_samples(self, rows: Any) -> np.ndarray:
        """Return the log-likelihood of each sample, of shape (n,)."""
        return self._run(str(self._head().likelihood), rows).ravel()

    def losses(self, rows: Any, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each sample, of shape (n,), or of its positions, of shape (n, positions)."""

        def run(part: np.ndarray, expected: np.ndarray) -> np.ndarray:
            if self.problem.loss is not None:
                return self._loss_run(part, expected)
            numbers = range(len(part))
            return np.array([np.sum(self._loss_run(part[i : i + 1], expected[i : i + 1])) for i in numbers])

        return _by_chunks(run, rows, labels)

    def mean_loss(self, rows: Any, labels: np.ndarray, sample_weight: np.ndarray | None) -> float:
        """Return the mean of the losses; a graph's own loss is taken of all samples at once."""
        if self.problem.loss is None:
            dense = isinstance(rows, SourceRows) or issparse(rows)
            whole = rows.toarray() if dense else rows
            return float(np.sum(self._loss_run(whole, labels, sample_weight)))
        return float(np.average(self.losses(rows, labels).astype(np.float64), weights=sample_weight))

    @runtime_errors()
    def _loss_run(self, rows, labels, sample_weight=None) -> np.ndarray:
        sessions = self._sessions.values
        if "losses" not in sessions:
            task = self.problem.task(False)
            loss = task.objective.loss
            whole = loss is None or loss.in_python
            graph = task.graph.model if whole else row_loss_graph(task)[0]
            own = initializer_arrays(self.model, task.graph.weights)
            sessions["losses"] = self._session(graph), task.objective, own
        session, objective, own = sessions["losses"]
        label, loss = objective.label, objective.loss
        feeds = {**self._feeds(rows, session), label: labels, **(self.weights or own)}
        own_loss = self.problem.trainable.own_loss
        if own_loss is not None and own_loss.row_weight is not None:
            ones = np.ones(len(labels), dtype=self.problem.dtype)
            feeds[SAMPLE_WEIGHT] = ones if sample_weight is None else sample_weight
        if loss is not None and loss.in_python:
            names = {value.name for value in session.get_inputs()}
            feeds = {name: value for name, value in feeds.items() if name in names}
            return loss.evaluate(labels.copy(), session.run(None, feeds)[0])[0]  # it may overwrite them
        return session.run(None, feeds)[0]


class LiveInference(Inference):
    """Sessions that take the trained weights as inputs, to look at a model while it is trained."""

    weights: Mapping[str, np.ndarray]

    def _part(self, output: str) -> ModelProto:
        part = super()._part(output)
        names = {tensor.name for tensor in part.graph.initializer}
        return make_inputs_of(part, [n for n in self.problem.trainable.trained if n in names])

    def _feeds(self, rows: Any, session: Any) -> dict[str, np.ndarray]:
        names = {value.name for value in session.get_inputs()}
        live = {name: array for name, array in self.weights.items() if name in names}
        return {**super()._feeds(rows, session), **live}

    def holding(self, weights: Mapping[str, np.ndarray]) -> LiveInference:
        """Return one that runs with some weights, in the same sessions."""
        other = copy.copy(self)
        other.weights = weights
        return other


def _rows_of_chunk(rows: Columns) -> int:
    """Return how many rows of columns, or of arrays such as images, are run at once."""
    return max(1, min(ROWS_OF_COLUMNS, CHUNK_BYTES // max(1, row_bytes(rows.arrays.values()))))


def _probabilities_of_positions(head: Scores, values: np.ndarray) -> np.ndarray:
    """Return the probabilities of classes along their axis, the last one where scores have none."""
    assert head.positions is not None
    axis = head.positions.class_axis
    if head.probabilities == head.decision:
        values = softmax(values, axis=axis) if head.n_outputs > 1 else expit(values)
    if head.n_outputs > 1:
        return values
    values = np.expand_dims(values, -1) if axis is None else values
    return np.concatenate([1 - values, values], axis=-1 if axis is None else axis)


def _by_chunks(function: Callable[..., np.ndarray], rows: Any, *others: np.ndarray) -> np.ndarray:
    """Run a function on rows: sparse ones are made dense, columns of text encoded, a chunk at a time."""
    if isinstance(rows, SourceRows):
        return rows.by_chunks(function, others)
    if issparse(rows):
        size = max(1, CHUNK_BYTES // max(1, rows.shape[1] * rows.dtype.itemsize))
    elif isinstance(rows, Columns) and len(rows) > (size := _rows_of_chunk(rows)):
        pass
    else:
        return function(rows, *others)
    results = []
    for start in range(0, rows.shape[0], size):
        part = slice(start, start + size)
        some = rows[part].toarray() if issparse(rows) else rows[part]
        results.append(function(some, *(other[part] for other in others)))
    return np.concatenate(results)
