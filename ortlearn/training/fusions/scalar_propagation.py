"""Scalars in place of tensors whose elements are all equal."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from .editable_graph import EditableGraph

__all__ = ["propagate_scalars"]

ELEMENTWISE = {"Mul", "Div", "Add", "Sub"}
RESHAPING = {"Unsqueeze", "Squeeze", "Reshape", "Expand", "Identity", "Flatten", "Transpose"}


def propagate_scalars(graph: EditableGraph) -> None:
    """Compute with a scalar what is the same for every element, and broadcast it at its last use.

    The mean over a batch, for instance, starts its gradient as one number for all rows: expanding
    and reshaping it takes a node each, where ``Mul`` broadcasts a scalar for nothing.
    """
    scalars: dict[str, str] = {}
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        own = _scalar_of(graph, node, scalars, nodes)
        if own is not None:
            scalars[node.output[0]] = own
            nodes.append(node)  # dropped with what nothing needs, where nobody wants the tensor
            continue
        if node.op_type in ELEMENTWISE and node.domain == "":
            _broadcast(graph, node, scalars)
        nodes.append(node)
    graph.replace(nodes)


def _single(graph: EditableGraph, name: str, scalars: dict[str, str]) -> str | None:
    """Return a tensor of shape () or (1,) that holds what every element of a tensor is."""
    if name in scalars:
        return scalars[name]
    return name if graph.is_single(name) and len(graph.shape(name) or ()) <= 1 else None


def _scalar_of(
    graph: EditableGraph, node: NodeProto, scalars: dict[str, str], nodes: list[NodeProto]
) -> str | None:
    if node.domain != "" or len(node.output) != 1:
        return None
    if node.op_type in RESHAPING:
        source = _single(graph, node.input[0], scalars)
        return source if source is not None and not _is_small(graph, node.output[0]) else None
    if node.op_type in ELEMENTWISE and any(name in scalars for name in node.input):
        parts = [_single(graph, name, scalars) for name in node.input]
        if all(part is not None for part in parts):
            return _combine(graph, node, [str(part) for part in parts], nodes)
    return None


def _is_small(graph: EditableGraph, name: str) -> bool:
    return graph.is_single(name)


def _combine(graph: EditableGraph, node: NodeProto, parts: list[str], nodes: list[NodeProto]) -> str:
    values = [graph.value(part) for part in parts]
    if values[0] is not None and values[1] is not None:
        operate = {"Mul": np.multiply, "Div": np.divide, "Add": np.add, "Sub": np.subtract}[node.op_type]
        with np.errstate(all="ignore"):
            result = operate(values[0].reshape(()), values[1].reshape(()))
        return graph.constant(np.asarray(result, dtype=values[0].dtype))
    new, name = graph.make(node.op_type, *parts, like=parts[0])
    nodes.append(new)
    return name


def _broadcast(graph: EditableGraph, node: NodeProto, scalars: dict[str, str]) -> None:
    """Let a node read a scalar where its other operand has the shape of the result."""
    result = graph.shape(node.output[0])
    for position, name in enumerate(node.input):
        other = node.input[1 - position]
        if name in scalars and other not in scalars and result is not None and graph.shape(other) == result:
            node.input[position] = scalars[name]
