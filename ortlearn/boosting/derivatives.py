"""Gradients and Hessian diagonals of losses with respect to raw scores, computed by ONNX graphs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..differentiation.gradient_model import gradient_model
from ..differentiation.stable_softplus import with_softplus, without_float64_softplus
from ..exceptions import PluginError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    prune,
    value_types,
)
from ..graphs.editing import with_fields
from ..graphs.queries import renamed_value
from ..losses import BaseLoss
from ..losses.written_losses import write_losses
from ..runtime.devices import Device
from ..runtime.onnxruntime_module import runtime_failures
from ..runtime.sessions import make_session
from .sample_derivatives import LARGEST_STEP, NEAREST, SampleDerivatives
from .sample_graphs import UnreadGraphError

__all__ = ["LossDerivatives", "predicts_labels"]

LABEL, SCORE, TOTAL, LOSSES, FIRST, SECOND = (
    f"ortlearn_{name}" for name in ("label", "score", "total", "losses", "first", "second")
)
OPSET = 18
CPU = Device("cpu")
#: Most scores whose graph is written column by column.
MOST_COLUMNS = 10


def predicts_labels(loss: BaseLoss) -> bool:
    """Return whether scores are predictions of the labels, and not logarithms or scores of classes."""
    return loss.tasks == {"regression"} and loss.link == "identity"


class LossDerivatives:
    """Losses of samples, and their first and second derivatives with respect to raw scores.

    The Hessian diagonal is the derivative of the gradient, by reverse mode applied twice: once for all scores
    of a regression, whose losses are sums over scores, and once for each class otherwise.
    """

    def __init__(self, loss: BaseLoss, n_scores: int = 1, dtype: Any = np.float64, n_jobs: int | None = None):
        if loss.in_python:
            raise PluginError(
                f"{type(loss).__name__} is a Python function, without a second derivative: write the loss as "
                "a subclass of BaseLoss."
            )
        self.loss, self.n_scores, self.dtype = loss, n_scores, np.dtype(dtype)
        self.predicts_labels = predicts_labels(loss)
        self.may_predict_labels = "regression" in loss.tasks and loss.link == "identity" and n_scores == 1
        self._by_class = n_scores > 1 and bool(loss.tasks & {"classification"})
        self.integer_labels = n_scores > 1 and loss.integer_labels
        self._n_jobs = n_jobs
        self._sessions: dict[str, Any] = {}

    def losses(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each sample, of shape (n,)."""
        return self._run("losses", labels, scores)[0]

    def gradient(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the gradient, of the shape of the scores (n, n_scores)."""
        return self._run("gradient", labels, scores)[0]

    def gradient_hessian(self, labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the diagonal of the Hessian, of shape (n, n_scores)."""
        first, second = self._run("hessian", labels, scores)
        return first, second

    def curvature(self, labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and a positive curvature, with which no sample asks for too large a step.

        Where a second derivative is not positive, since the loss is linear or not convex, the curvature of a
        score f that predicts the label y is the slope of the gradient between f and its mirror image
        ``2 y - f``: that of the parabola that touches a symmetric loss at f and lies above it (Hunter, D. R.
        and Lange, K., "A tutorial on MM algorithms", The American Statistician 58 (2004), 30-37). Where it is
        positive, but small, it is increased, so that no step ends beyond the mirror image. Other scores, of
        classes and logarithms, are not compared with labels: their largest step is :data:`LARGEST_STEP`, or
        one if the loss has kinks, and samples of zero gradient have a share of the mean curvature.
        """
        if self._samples is not None:
            first, second = self._run("curvature", labels, scores)
            return first, second
        first, second = self.gradient_hessian(labels, scores)
        slopes = np.abs(first) / self._largest_step
        slopes = np.maximum(slopes, NEAREST * slopes.mean(axis=0))
        if not (self.predicts_labels or self.may_predict_labels):
            return first, np.where(second > 0, second, slopes)
        away = np.reshape(labels, scores.shape) - scores
        distance = np.abs(away)
        np.maximum(distance, NEAREST * distance.mean() + np.finfo(np.float32).tiny, out=distance)
        if self.predicts_labels:
            slopes = np.abs(self.gradient(labels, scores + 2 * away) - first) / (2 * distance)
        return first, np.maximum(np.where(second > 0, second, slopes), np.abs(first) / (2 * distance))

    @property
    def _largest_step(self) -> float:
        return 1.0 if self.loss.kinks else LARGEST_STEP

    @cached_property
    def _samples(self) -> SampleDerivatives | None:
        """The derivatives by columns, or None if the graph is not read sample by sample."""
        if self.n_scores > 1 and not (self._by_class and self.n_scores <= MOST_COLUMNS):
            return None
        losses = self._losses()
        losses = prune(with_fields(losses, output=[losses.graph.output[0]]))
        try:
            found = SampleDerivatives(
                *(losses, self.n_scores, self.dtype, (self.predicts_labels, self.may_predict_labels)),
                *(self._largest_step, self._n_jobs),
            )
            found.curvatures  # noqa: B018 - reads all graphs
            return found
        except UnreadGraphError:
            return None

    def _run(self, kind: str, labels: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        try:
            return self._run_in(kind, labels, scores)
        except runtime_failures():  # onnxruntime has some operators, such as Cosh, for float32 only
            if self.dtype != np.float64:
                raise
            self.dtype = np.dtype(np.float32)
            self._sessions.clear()
            del self._samples
            return self._run_in(kind, labels, scores)

    def _run_in(self, kind: str, labels: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        if self._samples is not None:
            return self._samples.run(kind, labels, scores)
        if kind not in self._sessions:
            model = prune({"losses": self._losses, "gradient": self._gradient, "hessian": self._pair}[kind]())
            self._sessions[kind] = make_session(without_float64_softplus(model), CPU, self._n_jobs)
        session = self._sessions[kind]
        types = {LABEL: np.int64 if self.integer_labels else self.dtype, SCORE: self.dtype}
        feeds = {LABEL: labels, SCORE: scores}
        for value in session.get_inputs():
            shape = (-1,) if len(value.shape) == 1 else scores.shape
            feeds[value.name] = np.ascontiguousarray(np.reshape(feeds[value.name], shape), types[value.name])
        found = session.run(None, {value.name: feeds[value.name] for value in session.get_inputs()})
        shape = scores.shape[:1] if kind == "losses" else scores.shape
        return [a.reshape(shape) if a.size > 1 else np.broadcast_to(a.ravel(), shape) for a in found]

    def _losses(self) -> ModelProto:
        """Return the graph of the losses of samples, and of their sum."""
        elem_type = helper.np_dtype_to_tensor_dtype(self.dtype)
        score = TensorType(elem_type, ("N", self.n_scores))
        label = TensorType(TensorProto.INT64, ("N",)) if self.integer_labels else score
        op = GraphBuilder(OPSET, dtype=self.dtype, existing_names={LABEL, SCORE, TOTAL, LOSSES})
        op.set_type(LABEL, *label)
        op.set_type(SCORE, *score)
        losses = op.node("Identity", write_losses(self.loss, op, LABEL, SCORE), outputs=[LOSSES])
        op.node("ReduceSum", losses, keepdims=0, outputs=[TOTAL])
        inputs = [make_value_info(LABEL, label), make_value_info(SCORE, score)]
        types = {LOSSES: TensorType(elem_type, ("N",)), TOTAL: TensorType(elem_type, ())}
        outputs = [make_value_info(name, known) for name, known in types.items()]
        graph = helper.make_graph(op.nodes, "loss", inputs, outputs, op.initializers)
        opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _gradient(self) -> ModelProto:
        """Return the graph of the gradient."""
        model = gradient_model(with_softplus(self._losses()), TOTAL, [SCORE], keep_outputs=False)
        return map_names(model, {model.graph.output[0].name: FIRST})

    def _pair(self) -> ModelProto:
        """Return the graph of the gradient and of the diagonal of the Hessian."""
        model, parts = self._gradient(), []
        for number in range(self.n_scores) if self._by_class else (None,):
            model, name = _directional(model, number)
            parts.append(name)
        op = GraphBuilder(OPSET, dtype=self.dtype, existing_names=graph_names(model.graph))
        if self._by_class:
            columns = [op.Slice(name, [number], [number + 1], [1]) for number, name in enumerate(parts)]
            op.node("Concat", *columns, axis=1, outputs=[SECOND])
        else:
            op.node("Identity", parts[0], outputs=[SECOND])
        first = next(value for value in model.graph.output if value.name == FIRST)
        return append_nodes(model, op, outputs=[first, renamed_value(first, SECOND)])


def _directional(model: ModelProto, number: int | None) -> tuple[ModelProto, str]:
    """Append the derivative of the sum of the gradients, or of column ``number`` by its own score."""
    op = GraphBuilder(OPSET, existing_names=graph_names(model.graph), types=value_types(model))
    column = FIRST if number is None else op.Slice(FIRST, [number], [number + 1], [1])
    total = op.ReduceSum(column, keepdims=0)
    scalar = make_value_info(total, TensorType(value_types(model)[SCORE].elem_type, ()))
    model = append_nodes(model, op, outputs=[*model.graph.output, scalar])
    model = gradient_model(model, total, [SCORE], keep_outputs=True)
    kept = [value for value in model.graph.output if value.name != total]
    return with_fields(model, output=kept), kept[-1].name
