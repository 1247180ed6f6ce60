"""Reshapes of a matrix to its own number of rows, which converters compute from the shape of X."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, replace_nodes
from ...graphs.view import GraphView

__all__ = ["rewrite_row_reshapes"]


def rewrite_row_reshapes(model: ModelProto) -> ModelProto:
    """Return the model without reshapes of a matrix (N, k) to (N, -1), N read from another tensor.

    They do nothing, and a graph that depends on the number of samples cannot be computed before the training,
    sample by sample. Dimensions need names to be known as equal.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.onnx_files.rewrites.row_reshapes import rewrite_row_reshapes
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,2] y) <int64[1] zero = {0}, int64[1] rest = {-1}>
    ...     { z = Neg (x) shape = Shape (x) rows = Gather (shape, zero)
    ...       new = Concat <axis = 0> (rows, rest) y = Reshape (z, new) }''')
    >>> rewrite_row_reshapes(model).graph.node[-1].op_type
    'Identity'
    """
    graph = GraphView(model)

    def rule(node: NodeProto, op: GraphBuilder) -> bool:
        rows = _source_of_rows(graph, node.input[1])
        sizes, other = op.shape(node.input[0]), None if rows is None else op.shape(rows)
        if sizes is None or len(sizes) != 2 or not other or sizes[0] is None or sizes[0] != other[0]:
            return False
        op.Identity(node.input[0], outputs=list(node.output))
        return True

    return replace_nodes(model, {("", "Reshape"): rule})


def _source_of_rows(graph: GraphView, shape: str) -> str | None:
    """Return the tensor whose number of rows comes first in a computed shape (n, -1)."""
    parts = graph.producer(shape, "Concat")
    if parts is None or len(parts.input) != 2 or not graph.is_constant(parts.input[1], -1):
        return None
    rows = graph.producer(parts.input[0], "Gather")
    source = None if rows is None else graph.producer(rows.input[0], "Shape")
    if rows is None or source is None or not graph.is_constant(rows.input[1], 0):
        return None
    return source.input[0]
