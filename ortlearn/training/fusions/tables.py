"""Elements of tables, and their sparse gradients, which are added to the tables directly."""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from ...graphs.nodes import attribute, attributes_of
from ...graphs.view import GraphView

__all__ = ["gather_scalars", "scatter_into_weights", "scatter_rows"]

#: Number of scalars from which two more nodes take less time than Gather.
MANY_SCALARS = 100


def gather_scalars(graph: GraphView) -> None:
    """Write Gather of many scalars as GatherElements, which takes a tenth of the time."""
    graph.rewrite(partial(_gather_elements, graph))


def _gather_elements(graph: GraphView, node: NodeProto) -> bool:
    if (node.domain, node.op_type) != ("", "Gather") or graph.value(node.input[1]) is not None:
        return False
    op, (table, indices) = graph.op, node.input
    sizes = [size if isinstance(size, int) else 0 for size in op.shape(indices) or ()]
    if len(op.shape(table) or ()) != 1 or not sizes or 0 in sizes[1:] or 0 < np.prod(sizes) < MANY_SCALARS:
        return False
    flat = op.GatherElements(table, op.Reshape(indices, np.array([-1])), axis=0)
    op.node("Reshape", flat, np.array([-1, *sizes[1:]]), outputs=node.output)
    return True


def scatter_into_weights(graph: GraphView) -> None:
    """Write ``w + scatter(zeros, indices, g)`` as ``scatter(w, indices, g)``, and a difference with ``-g``.

    If gradients include the learning rate, a step updates only the rows of a table that the batch has read.
    """
    graph.rewrite(partial(_fuse_scatter, graph))


def _fuse_scatter(graph: GraphView, node: NodeProto) -> bool:
    if node.domain != "" or not graph.is_float(node.output[0]):
        return False
    if node.op_type == "Sub":
        return _write_scatter(graph, node, node.input[0], node.input[1], negated=True)
    if node.op_type == "Add":
        kept, gradient = node.input
        return _write_scatter(graph, node, kept, gradient) or _write_scatter(graph, node, gradient, kept)
    return False


def _write_scatter(
    graph: GraphView, node: NodeProto, kept: str, gradient: str, negated: bool = False
) -> bool:
    sizes, reshaped = graph.sizes(node.output[0]), graph.producer(gradient, "Reshape")
    if sizes is None or graph.sizes(kept) != sizes or graph.sizes(gradient) != sizes:
        return False
    inner = gradient if reshaped is None else reshaped.input[0]
    scatter = graph.producer(inner, "ScatterElements")
    if scatter is None or attribute(scatter, "reduction") != b"add" or not _is_zero(graph, scatter.input[0]):
        return False
    if not graph.read_once(gradient) or not graph.read_once(inner) or graph.sizes(inner) is None:
        return False
    op, added, target = graph.op, scatter.input[2], kept
    if negated:
        added = graph.copy_type(op.Neg(added), added)
    if reshaped is not None:
        target = graph.copy_type(op.Reshape(kept, np.array(graph.sizes(inner))), inner)
    outputs = node.output if reshaped is None else None
    written = op.ScatterElements(target, scatter.input[1], added, outputs=outputs, **attributes_of(scatter))
    if reshaped is not None:
        op.node("Reshape", graph.copy_type(written, inner), np.array(sizes), outputs=node.output)
    return True


def _is_zero(graph: GraphView, name: str) -> bool:
    value = graph.value(name)
    if value is None:
        filled = graph.producer(name, "ConstantOfShape")
        tensor = None if filled is None else attribute(filled, "value")
        if tensor is None:
            return filled is not None
        value = numpy_helper.to_array(tensor)
    return not np.any(value)


def scatter_rows(graph: GraphView) -> None:
    """Write ScatterElements that adds whole rows as ScatterND.

    It takes a seventh of the time. The session must have one thread: in onnxruntime 1.19, several threads
    lose values that are added to the same row.
    """
    graph.rewrite(partial(_use_scatter_nd, graph))


def _use_scatter_nd(graph: GraphView, node: NodeProto) -> bool:
    if node.op_type != "ScatterElements" or attribute(node, "reduction") != b"add":
        return False
    expand = graph.producer(node.input[1], "Expand")
    column = None if expand is None else graph.producer(expand.input[0], "Reshape")
    shape = None if column is None else graph.value(column.input[1])
    if column is None or shape is None or shape.tolist() != [-1, 1] or attribute(node, "axis", 0) != 0:
        return False
    indices = graph.op.Cast(column.input[0], to=TensorProto.INT64)
    indices = graph.op.Reshape(indices, np.array([-1, 1]))
    graph.op.ScatterND(node.input[0], indices, node.input[2], outputs=node.output, reduction="add")
    return True
