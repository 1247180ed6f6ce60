"""Reshapes of a matrix to its own number of rows, which converters compute from the shape of X."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, initializer_arrays, replace_nodes

__all__ = ["rewrite_row_reshapes"]


def rewrite_row_reshapes(model: ModelProto) -> ModelProto:
    """Return the model without reshapes of a matrix (N, k) to (N, -1), N read off another tensor.

    They do nothing, and what depends on a number of rows cannot be computed row by row, before the
    training.

    Parameters
    ----------
    model : onnx.ModelProto
        Model; its dimensions need names to be known as equal.

    Returns
    -------
    onnx.ModelProto
        Model with the same outputs.

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
    producers = {name: node for node in model.graph.node for name in node.output}
    rule = partial(_without_reshape, producers, initializer_arrays(model))
    return replace_nodes(model, {("", "Reshape"): rule})


def _without_reshape(
    producers: Mapping[str, NodeProto],
    arrays: Mapping[str, np.ndarray],
    node: NodeProto,
    op: GraphBuilder,
) -> bool:
    parts = producers.get(node.input[1])
    if parts is None or parts.op_type != "Concat" or len(parts.input) != 2:
        return False
    rows, rest = producers.get(parts.input[0]), arrays.get(parts.input[1])
    if rest is None or rest.tolist() != [-1] or rows is None or rows.op_type != "Gather":
        return False
    index, source = arrays.get(rows.input[1]), producers.get(rows.input[0])
    if index is None or index.tolist() != [0] or source is None or source.op_type != "Shape":
        return False
    shape, other = op.shape(node.input[0]), op.shape(source.input[0])
    if shape is None or len(shape) != 2 or not other or shape[0] is None or shape[0] != other[0]:
        return False
    op.Identity(node.input[0], outputs=list(node.output))
    return True
