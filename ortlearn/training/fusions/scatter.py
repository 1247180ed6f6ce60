"""Gradients of tables, of which a batch reads few rows, added to the tables themselves."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from .editable_graph import EditableGraph

__all__ = ["scatter_into_weights"]


def scatter_into_weights(graph: EditableGraph) -> None:
    """Write ``w - scatter(zeros, places, g)`` as ``scatter(w, places, -g)``.

    With the learning rate in the gradient of the loss, a step changes the rows of a table that the
    batch has read, and neither makes nor subtracts the zeros of all the others.
    """
    nodes: list[NodeProto] = []
    for node in graph.nodes:
        nodes.extend(_scattered(graph, node) or [node])
    graph.replace(nodes)


def _scattered(graph: EditableGraph, node: NodeProto) -> list[NodeProto] | None:
    if node.op_type != "Sub" or node.domain != "" or not graph.is_float(node.output[0]):
        return None
    kept, gradient = node.input
    scatter = graph.producer(gradient, "ScatterElements")
    if scatter is None or not graph.read_once(gradient) or not _adds(scatter):
        return None
    shape = graph.shape(node.output[0])
    if shape is None or graph.shape(kept) != shape or graph.shape(gradient) != shape:
        return None
    if not _is_zero(graph, scatter.input[0]):
        return None
    minus, name = graph.make("Neg", scatter.input[2], like=scatter.input[2])
    attributes = {a.name: helper.get_attribute_value(a) for a in scatter.attribute}
    new, _ = graph.make(
        "ScatterElements", kept, scatter.input[1], name, like=kept, output=node.output[0], **attributes
    )
    return [minus, new]


def _adds(scatter: NodeProto) -> bool:
    return any(a.name == "reduction" and a.s == b"add" for a in scatter.attribute)


def _is_zero(graph: EditableGraph, name: str) -> bool:
    value = graph.value(name)
    if value is not None:
        return not np.any(value)
    filled = graph.producer(name, "ConstantOfShape")
    values = [a.t for a in filled.attribute if a.name == "value"] if filled is not None else []
    return filled is not None and not any(np.any(numpy_helper.to_array(tensor)) for tensor in values)
