"""Which columns of a matrix are what."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...graphs.nodes import attribute
from .graph_end import GraphEnd

__all__ = ["column_of", "parts_of"]


def parts_of(end: GraphEnd, name: str) -> list[str] | None:
    """Return the columns that a matrix is put together from, None where it is not.

    Parameters
    ----------
    end : GraphEnd
        Graph.
    name : str
        Matrix.

    Returns
    -------
    list of str or None
        Tensors of shape (n, 1).
    """
    node = end.producer(name)
    if node is None or node.op_type != "Concat" or attribute(node, "axis", 0) not in (1, -1):
        return None
    columns = end.inputs(node)
    return columns if all(end.width(column) in (1, None) for column in columns) else None


def column_of(end: GraphEnd, node: NodeProto) -> tuple[str, int] | None:
    """Return the matrix and the number of the column that a node takes out of it.

    Parameters
    ----------
    end : GraphEnd
        Graph.
    node : onnx.NodeProto
        Slice, Gather or ArrayFeatureExtractor.

    Returns
    -------
    tuple of (str, int) or None
        None where the node takes anything else.
    """
    if node.op_type == "Slice":
        values = [end.constant(name) for name in node.input[1:]]
        if len(values) < 3 or any(value is None or value.size != 1 for value in values):
            return None
        start, stop, axis = (int(np.ravel(value)[0]) for value in values[:3] if value is not None)
        return (end.origin(node.input[0]), start) if axis in (1, -1) and stop == start + 1 else None
    if node.op_type == "ArrayFeatureExtractor" or (
        node.op_type == "Gather" and attribute(node, "axis", 0) in (1, -1)
    ):
        index = end.constant(node.input[1])
        if index is None or index.size != 1:
            return None
        place, width = int(np.ravel(index)[0]), end.width(node.input[0])
        if place < 0 and width is None:
            return None
        return end.origin(node.input[0]), place + (width or 0) if place < 0 else place
    return None
