"""Gradients and Hessian diagonals of losses with respect to raw scores, computed by ONNX graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ..differentiation import gradient_model
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
    replace_nodes,
    value_types,
)
from ..graphs.editing import with_fields
from ..graphs.queries import renamed_value
from ..losses import BaseLoss
from ..losses.written_losses import write_losses
from ..runtime.devices import Device
from ..runtime.sessions import make_session

__all__ = ["LossDerivatives"]

LABEL, SCORE, TOTAL, ROWS, FIRST, SECOND = (
    f"ortlearn_{name}" for name in ("label", "score", "total", "rows", "first", "second")
)
OPSET = 18
#: Smallest distance from a kink that a curvature is computed for, relative to the mean distance.
NEAREST = 0.1


class _PlainKinks:
    """A builder that writes Relu by the absolute value, so that all kinks are absolute values."""

    def __init__(self, op: GraphBuilder):
        self._op = op

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)

    def Relu(self, values: str) -> str:
        return self._op.Mul(self._op.Add(values, self._op.Abs(values)), 0.5)


class LossDerivatives:
    """Losses of samples, and their first and second derivatives with respect to raw scores.

    The Hessian diagonal is the derivative of the gradient, by reverse mode applied twice. Where a loss has a
    kink ``|u|``, the second derivative is that of ``u^2 / (2 |u_0|)``, the parabola that touches it at the
    current ``u_0`` and lies above it elsewhere (Hunter, D. R. and Lange, K., "A tutorial on MM algorithms",
    The American Statistician 58 (2004), 30-37). ``|u_0|`` counts as at least a tenth of its mean.
    """

    def __init__(self, loss: BaseLoss, n_scores: int = 1, dtype: Any = np.float64, n_jobs: int | None = None):
        if loss.in_python:
            raise PluginError(
                f"{type(loss).__name__} is a Python function, without a second derivative: write the loss as "
                "a subclass of BaseLoss."
            )
        self.loss, self.n_scores, self.dtype = loss, n_scores, np.dtype(dtype)
        self._by_class = n_scores > 1 and bool(loss.tasks & {"classification"})
        self.integer_labels = n_scores > 1 and loss.integer_labels
        self._n_jobs = n_jobs
        self._sessions: dict[str, Any] = {}

    def losses(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each sample, of shape (n,)."""
        return self._run("rows", labels, scores)[0]

    def gradient(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the gradient, of the shape of the scores (n, n_scores)."""
        return self._run("gradient", labels, scores)[0]

    def gradient_hessian(self, labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the diagonal of the Hessian, of shape (n, n_scores)."""
        *first, hessian = self._run("pair", labels, scores)
        return first[0] if first else self.gradient(labels, scores), hessian

    def _run(self, kind: str, labels: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        if kind not in self._sessions:
            model = {"rows": self._rows, "gradient": self._gradient, "pair": self._pair}[kind]()
            model = without_float64_softplus(prune(model))
            self._sessions[kind] = make_session(model, Device("cpu"), self._n_jobs)
        shape, dtype = ((-1,), np.int64) if self.integer_labels else (scores.shape, self.dtype)
        labels = np.ascontiguousarray(np.reshape(labels, shape), dtype)
        scores = np.ascontiguousarray(scores, self.dtype)
        return self._sessions[kind].run(None, {LABEL: labels, SCORE: scores})

    def _rows(self, kinks: bool = False) -> ModelProto:
        """Return the graph of the losses of samples, and of their sum."""
        elem_type = helper.np_dtype_to_tensor_dtype(self.dtype)
        score = TensorType(elem_type, ("N", self.n_scores))
        label = TensorType(TensorProto.INT64, ("N",)) if self.integer_labels else score
        op = GraphBuilder(OPSET, dtype=self.dtype, existing_names={LABEL, SCORE, TOTAL, ROWS})
        op.set_type(LABEL, *label)
        op.set_type(SCORE, *score)
        builder: Any = _PlainKinks(op) if kinks else op
        rows = op.node("Identity", write_losses(self.loss, builder, LABEL, SCORE), outputs=[ROWS])
        op.node("ReduceSum", rows, keepdims=0, outputs=[TOTAL])
        inputs = [make_value_info(LABEL, label), make_value_info(SCORE, score)]
        types = {ROWS: TensorType(elem_type, ("N",)), TOTAL: TensorType(elem_type, ())}
        outputs = [make_value_info(name, known) for name, known in types.items()]
        graph = helper.make_graph(op.nodes, "loss", inputs, outputs, op.initializers)
        opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _gradient(self, kinks: bool = False) -> ModelProto:
        """Return the graph of the gradient."""
        model = gradient_model(with_softplus(self._rows(kinks)), TOTAL, [SCORE], keep_outputs=False)
        return map_names(model, {model.graph.output[0].name: FIRST})

    def _pair(self) -> ModelProto:
        """Return the graph of the gradient and the diagonal of the Hessian, or of the latter at kinks."""
        kinks = self.loss.kinks
        model, slopes = _with_slopes(self._gradient(True)) if kinks else (self._gradient(), {})
        parts = []
        for number in range(self.n_scores) if self._by_class else (None,):
            model, name = _directional(model, number)
            parts.append(name)
        op = GraphBuilder(OPSET, dtype=self.dtype, existing_names=graph_names(model.graph))
        if self._by_class:
            parts = [op.Slice(name, [number], [number + 1], [1]) for number, name in enumerate(parts)]
        op.node("Concat", *parts, axis=1, outputs=[SECOND])
        first = [value for value in model.graph.output if value.name == FIRST and not kinks]
        second = renamed_value(model.graph.output[0], SECOND)
        return _with_computed(append_nodes(model, op, outputs=[*first, second]), slopes)


def _with_slopes(model: ModelProto) -> tuple[ModelProto, dict[str, str]]:
    """Return a gradient with ``u * slope`` for each sign of u; slopes are inputs, whose u is returned."""
    known, slopes = value_types(model)[SCORE], {}

    def replaced(node: NodeProto, op: GraphBuilder) -> str:
        name = op.unique("slope")
        slopes[name] = node.input[0]
        return op.Mul(node.input[0], op.set_type(name, *known))

    model = replace_nodes(model, {("", "Sign"): replaced})
    added = [make_value_info(name, known) for name in slopes]
    return with_fields(model, input=[*model.graph.input, *added]), slopes


def _with_computed(model: ModelProto, slopes: dict[str, str]) -> ModelProto:
    """Return a graph that computes the slopes ``1 / |u|`` instead of taking them as inputs."""
    nodes = list(model.graph.node)
    op = GraphBuilder(OPSET, existing_names=graph_names(model.graph))
    op.float_dtype = helper.tensor_dtype_to_np_dtype(value_types(model)[SCORE].elem_type)
    for name, values in slopes.items():
        begin = len(op.nodes)
        size = op.Abs(values)
        least = op.Add(op.Mul(op.ReduceMean(size, keepdims=0), NEAREST), float(np.finfo(np.float32).tiny))
        op.node("Reciprocal", op.Max(size, least), outputs=[name])
        after = next((i for i, node in enumerate(nodes) if values in node.output), -1)
        nodes[after + 1 : after + 1] = op.nodes[begin:]
    inputs = [value for value in model.graph.input if value.name not in slopes]
    return with_fields(model, node=nodes, input=inputs, initializer=[*model.graph.initializer, *op.initializers])


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
