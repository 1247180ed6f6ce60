"""Scalars instead of tensors whose elements are all equal."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto

from ...graphs.nodes import copy_node
from ...graphs.view import GraphView

__all__ = ["propagate_scalars"]

ELEMENTWISE = {"Mul": np.multiply, "Div": np.divide, "Add": np.add, "Sub": np.subtract}
RESHAPING = {"Unsqueeze", "Squeeze", "Reshape", "Expand", "Identity", "Flatten", "Transpose"}


def propagate_scalars(graph: GraphView) -> None:
    """Replace tensors whose elements are all equal by a scalar that is broadcast at its last use.

    For example, the gradient of a mean over a batch is the same for all samples: expanding and reshaping it
    are two nodes, while ``Mul`` broadcasts a scalar at no cost.
    """
    graph.rewrite(partial(_propagate_node, graph, {}))


def _propagate_node(graph: GraphView, scalars: dict[str, str], node: NodeProto) -> bool:
    if node.domain != "" or len(node.output) != 1:
        return False
    own = _scalar_result(graph, node, scalars)
    if own is not None:
        scalars[node.output[0]] = own
        graph.op.nodes.append(node)  # removed later if the tensor is not used
        return True
    return node.op_type in ELEMENTWISE and _read_scalar(graph, node, scalars)


def _as_scalar(graph: GraphView, name: str, scalars: dict[str, str]) -> str | None:
    """Return a tensor of shape () or (1,) with the value of all elements of a tensor, or None."""
    if name in scalars:
        return scalars[name]
    return name if graph.op.shape(name) in ((), (1,)) else None


def _scalar_result(graph: GraphView, node: NodeProto, scalars: dict[str, str]) -> str | None:
    if node.op_type in RESHAPING and not graph.is_single(node.output[0]):
        return _as_scalar(graph, node.input[0], scalars)
    if node.op_type == "Neg" and node.input[0] in scalars:
        return graph.copy_type(graph.op.Neg(scalars[node.input[0]]), scalars[node.input[0]])
    if node.op_type in ELEMENTWISE and not scalars.keys().isdisjoint(node.input):
        parts = [_as_scalar(graph, name, scalars) for name in node.input]
        if parts[0] is not None and parts[1] is not None:
            return _combine(graph, node.op_type, parts[0], parts[1])
    return None


def _combine(graph: GraphView, op_type: str, left: str, right: str) -> str:
    one, other = graph.value(left), graph.value(right)
    if one is not None and other is not None:
        with np.errstate(all="ignore"):
            result = ELEMENTWISE[op_type](one.reshape(()), other.reshape(()))
        return graph.op.constant(np.asarray(result, dtype=one.dtype))
    return graph.copy_type(graph.op.node(op_type, left, right), left)


def _read_scalar(graph: GraphView, node: NodeProto, scalars: dict[str, str]) -> bool:
    """Replace an operand by a scalar if the other operand has the shape of the result."""
    sizes = graph.sizes(node.output[0])
    for position, name in enumerate(node.input):
        other = node.input[1 - position]
        if name in scalars and other not in scalars and sizes is not None and graph.sizes(other) == sizes:
            inputs = [scalars[name], other] if position == 0 else [other, scalars[name]]
            graph.op.nodes.append(copy_node(node, inputs))
            return True
    return False
