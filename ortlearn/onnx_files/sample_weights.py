"""Sample weights of graphs that compute their loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, helper

from ..exceptions import ConversionError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    opset_versions,
    value_types,
)
from ..graphs.editing import with_fields

__all__ = ["with_weight_vector"]


def with_weight_vector(model: ModelProto, name: str, vector: str, dtype: Any) -> ModelProto:
    """Return a graph with its input of sample weights replaced by a vector.

    ``name`` is the input, of shape (n,) or (n, 1); without it the graph is unchanged. ``vector`` is the name
    of the new input, of shape (n,) and type ``dtype``.
    """
    known = value_types(model).get(name)
    if known is None:
        return model
    shape = (None,) if known.shape is None else known.shape
    if len(shape) > 2 or shape[1:] not in ((), (1,)):
        raise ConversionError(
            f"Input {name!r} for sample weights must have shape (n,) or (n, 1), got {shape}."
        )
    wanted = TensorType(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape[:1])
    result = map_names(model, {name: vector})
    if (known.elem_type, len(shape)) != (wanted.elem_type, 1):
        names = graph_names(model.graph) | {vector}
        op = GraphBuilder(opset_versions(model)[""], existing_names=names, prefix="row_weights_")
        value = vector if known.elem_type == wanted.elem_type else op.Cast(vector, to=known.elem_type)
        if len(shape) == 2:
            op.node("Unsqueeze", value, [1], outputs=[name])
        else:
            op.node("Identity", value, outputs=[name])
        result = append_nodes(model, op, first=True)
    info = make_value_info(vector, wanted)
    inputs = [info if value.name in (name, vector) else value for value in result.graph.input]
    return with_fields(result, input=inputs)
