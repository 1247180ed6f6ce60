"""A column taken out of columns just put side by side -> that column."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper

from ...graphs import TensorType, copy_model, initializer_arrays, prune, value_types

__all__ = ["take_columns_directly"]


def take_columns_directly(model: ModelProto) -> ModelProto:
    """Return the model without a Concat that a Gather undoes, as skl2onnx writes the score of two classes.

    What is trained is then found right after its last weight, and its gradient is shorter.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model that computes the same.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion.inputs.single_columns import take_columns_directly
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,1] x) => (float[N,1] y) <int64[1] second = {1}>
    ...     { m = Neg (x) c = Concat <axis = 1> (m, x) y = Gather <axis = 1> (c, second) }''')
    >>> [(node.op_type, *node.input) for node in take_columns_directly(model).graph.node]
    [('Identity', 'x')]
    """
    arrays, producers = initializer_arrays(model), {n: node for node in model.graph.node for n in node.output}
    types = value_types(model)
    found = {
        node.output[0]: column
        for node in model.graph.node
        if (column := _column(node, arrays, producers, types)) is not None
    }
    if not found:
        return model
    model = copy_model(model)
    for node in model.graph.node:
        if node.output[0] in found:
            node.op_type = "Identity"
            node.input[:] = [found[node.output[0]]]
            del node.attribute[:]
    return prune(model)


def _column(
    node: NodeProto,
    arrays: Mapping[str, np.ndarray],
    producers: Mapping[str, NodeProto],
    types: Mapping[str, TensorType],
) -> str | None:
    """Return the column that a node takes out of others, None if it does something else."""
    if node.op_type != "Gather" or _attribute(node, "axis", 0) not in (1, -1):
        return None
    index = _constant(node.input[1], arrays, producers)
    source = producers.get(node.input[0])
    if index is None or index.shape != (1,) or source is None or source.op_type != "Concat":
        return None
    known = [types.get(name) for name in source.input]
    single = all(
        t is not None and t.shape is not None and len(t.shape) == 2 and t.shape[1] == 1 for t in known
    )
    if not single or _attribute(source, "axis", 0) not in (1, -1):
        return None
    position = int(index[0])
    return source.input[position] if -len(known) <= position < len(known) else None


def _attribute(node: NodeProto, name: str, default: int) -> int:
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return values.get(name, default)


def _constant(
    name: str, arrays: Mapping[str, np.ndarray], producers: Mapping[str, NodeProto]
) -> np.ndarray | None:
    """Return a constant, also one that is reshaped on the way."""
    node = producers.get(name)
    if node is None or node.op_type != "Reshape":
        return arrays.get(name)
    values, shape = arrays.get(node.input[0]), arrays.get(node.input[1])
    return None if values is None or shape is None else values.reshape(shape)
