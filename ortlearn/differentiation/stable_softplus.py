"""Softplus in float64: one operator while it is differentiated, and nodes that do not overflow afterwards."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from ..graphs import GraphBuilder, replace_nodes
from ..graphs.patterns import PatternView

__all__ = ["stable_softplus", "with_softplus", "without_float64_softplus"]

#: How losses write Softplus in float64.
WRITTEN = ("Add", ("Mul", ("Add", "x", ("Abs", "x")), 0.5), ("Softplus", ("Neg", ("Abs", "x"))))


def stable_softplus(op: GraphBuilder, x: str) -> str:
    """Write ``log(1 + exp(x))`` as ``max(x, 0) - log(sigmoid(|x|))``, which does not overflow.

    It is for differentiated graphs: the rules give its gradient at zero as 0 instead of 1/2.
    """
    return op.Sub(op.Relu(x), op.Log(op.Sigmoid(op.Abs(x))))


def with_softplus(model: ModelProto) -> ModelProto:
    """Replace the form of losses in float64 by Softplus, whose gradient is a single Sigmoid."""
    if not _has_float64_inputs(model):
        return model
    graph = PatternView(model)

    def joined(node: NodeProto) -> bool:
        found = graph.match(node.output[0], WRITTEN) if node.op_type == "Add" else None
        return found is not None and bool(graph.op.Softplus(found["x"], outputs=node.output))

    return graph.to_model() if graph.rewrite(joined) else model


def without_float64_softplus(model: ModelProto) -> ModelProto:
    """Replace each Softplus in float64, which overflows in onnxruntime, by stable nodes."""

    def replaced(node: NodeProto, op: GraphBuilder) -> bool | str:
        return op.dtype(node.input[0]) == np.float64 and stable_softplus(op, node.input[0])

    return replace_nodes(model, {("", "Softplus"): replaced}) if _has_float64_inputs(model) else model


def _has_float64_inputs(model: ModelProto) -> bool:
    """Return whether an input is float64: others need no inference of types."""
    return any(value.type.tensor_type.elem_type == TensorProto.DOUBLE for value in model.graph.input)
