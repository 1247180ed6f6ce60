"""Tables of float64 in a float32 graph -> tables of float32.

skl2onnx keeps the targets of nearest neighbours as they come, float64, and casts what it reads.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from ...graphs import GraphBuilder, copy_model, initializer_arrays, replace_nodes

__all__ = ["single_precision_tables"]


def single_precision_tables(model: ModelProto) -> ModelProto:
    """Return the model with float32 in place of the float64 tables that it only gathers from.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model whose inner types are the same; the one given where an input or output is float64.
    """
    ends = (*model.graph.input, *model.graph.output)
    if any(value.type.tensor_type.elem_type == TensorProto.DOUBLE for value in ends):
        return model
    doubles = {name: array for name, array in initializer_arrays(model).items() if array.dtype == np.float64}
    tables = {name for name in doubles if _only_gathered(model, name)}
    if not tables:
        return model

    def gather(node: NodeProto, op: GraphBuilder) -> bool:
        if node.input[0] not in tables:
            return False
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
        op.Cast(op.Gather(*node.input, axis=axis), to=TensorProto.DOUBLE, outputs=[node.output[0]])
        return True

    result = copy_model(replace_nodes(model, {("", "Gather"): gather}))
    for tensor in result.graph.initializer:
        if tensor.name in tables:
            single = doubles[tensor.name].astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(single, tensor.name))
    return result


def _only_gathered(model: ModelProto, name: str) -> bool:
    readers = [node for node in model.graph.node if name in node.input]
    return bool(readers) and all(node.op_type == "Gather" and node.input[0] == name for node in readers)
