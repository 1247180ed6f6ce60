"""Two columns of scores that are opposite, as skl2onnx writes two classes in float64 -> one column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from ..graphs import GraphBuilder, copy_model, graph_names, initializer_arrays, opset_versions

__all__ = ["merge_opposite_columns"]


def merge_opposite_columns(model: ModelProto) -> ModelProto:
    """Return the model with one column of scores where two classes had opposite ones.

    Trained on their own the two columns would not stay opposite, and each would add its loss. Two columns
    that no ArgMax chooses from are no classes: those of two targets, labels or units may be opposite by
    chance, or all zero.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model that computes the same.
    """
    arrays = initializer_arrays(model)
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in node.input:
            readers[name].append(node)
    op = GraphBuilder(opset_versions(model).get("", 18), existing_names=graph_names(model.graph))
    new: dict[str, np.ndarray] = {}
    for node in model.graph.node:
        op.nodes.append(node)
        if node.op_type == "Add" and _is_opposite(node, model, arrays, readers):
            product = next(n for n in model.graph.node if node.input[0] in n.output)
            new[product.input[1]] = arrays[product.input[1]][:, 1:]
            new[node.input[1]] = arrays[node.input[1]].ravel()[1:]
            _write_column(op, node)
    return _with_arrays(model, op, new) if new else model


def _is_opposite(
    add: NodeProto,
    model: ModelProto,
    arrays: Mapping[str, np.ndarray],
    readers: Mapping[str, list[NodeProto]],
) -> bool:
    intercept = arrays.get(add.input[1])
    product = next((n for n in model.graph.node if add.input[0] in n.output), None)
    if intercept is None or intercept.size != 2 or product is None or product.op_type != "MatMul":
        return False
    coefficients = arrays.get(product.input[1])
    if coefficients is None or coefficients.ndim != 2 or coefficients.shape[1] != 2:
        return False
    names = (*product.input[1:], *add.input)
    reading = {reader.op_type for reader in readers[add.output[0]]}
    return (
        all(len(readers[name]) == 1 for name in names)
        and "ArgMax" in reading
        and "Softmax" not in reading
        and np.array_equal(coefficients[:, 0], -coefficients[:, 1])
        and intercept.ravel()[0] == -intercept.ravel()[1]
    )


def _write_column(op: GraphBuilder, add: NodeProto) -> None:
    """Replace the last node by the sum of one column, and both columns made from it."""
    op.nodes.pop()
    score = op.Add(*add.input)
    op.node("Concat", op.Neg(score), score, outputs=list(add.output), axis=1)


def _with_arrays(model: ModelProto, op: GraphBuilder, new: Mapping[str, np.ndarray]) -> ModelProto:
    result = copy_model(model)
    del result.graph.node[:]
    result.graph.node.extend(op.nodes)
    del result.graph.value_info[:]
    for tensor in result.graph.initializer:
        if tensor.name in new:
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(new[tensor.name]), tensor.name))
    return result
