"""Named dimensions: the builder ignores that they may be one and broadcast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from onnx import ModelProto, NodeProto

from ...graphs import TensorType, copy_model, value_types
from .gradient_path import gradient_nodes

__all__ = ["drop_dimension_names"]

#: Operators whose operands are broadcast, with the number of last axes that are not.
_BROADCAST = dict.fromkeys(("Add", "Sub", "Mul", "Div", "Min", "Max", "PRelu", "Gemm", "Expand"), 0)
_BROADCAST |= {"MatMul": 2}


def drop_dimension_names(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> ModelProto:
    """Return the model without names of dimensions if one of them may be broadcast.

    The builder compares dimensions without name and number at run time.
    """
    types = value_types(model)
    if not any(_may_broadcast(node, types) for node in gradient_nodes(model, outputs, wrt, types)):
        return model
    result = copy_model(model)
    for value in (*result.graph.input, *result.graph.output, *result.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.Clear()
    return result


def _may_broadcast(node: NodeProto, types: Mapping[str, TensorType]) -> bool:
    inner = _BROADCAST.get(node.op_type)
    if inner is None:
        return False
    names = {"Gemm": [*node.input[2:], node.output[0]], "Expand": [node.input[0], node.output[0]]}
    shapes = [types[x].shape if x in types else None for x in names.get(node.op_type, node.input) if x]
    if None in shapes:
        return True
    outer = [(shape or ())[: len(shape or ()) - inner][::-1] for shape in shapes]
    return any(
        one != other and 1 not in (one, other)
        for first, second in combinations(outer, 2)
        for one, other in zip(first, second, strict=False)
    )
