"""Tables of float64 in a float32 graph -> tables of float32.

skl2onnx keeps the targets of nearest neighbours as they come, float64, and casts what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from ...graphs import GraphBuilder, initializer_arrays, replace_nodes
from ...graphs.editing import with_fields
from ...graphs.nodes import attribute
from ...graphs.view import GraphView

__all__ = ["single_precision_tables"]


def single_precision_tables(model: ModelProto) -> ModelProto:
    """Return the model with float32 in place of the float64 tables that it only gathers from.

    A model with an input or output of float64 stays as it is.
    """
    ends = (*model.graph.input, *model.graph.output)
    if any(value.type.tensor_type.elem_type == TensorProto.DOUBLE for value in ends):
        return model
    doubles = {name: array for name, array in initializer_arrays(model).items() if array.dtype == np.float64}
    readers = GraphView(model).readers
    tables = {name for name in doubles if _only_gathered(name, readers.get(name, ()))}
    if not tables:
        return model

    def gather(node: NodeProto, op: GraphBuilder) -> bool:
        if node.input[0] not in tables:
            return False
        axis = attribute(node, "axis", 0)
        op.Cast(op.Gather(*node.input, axis=axis), to=TensorProto.DOUBLE, outputs=[node.output[0]])
        return True

    result = replace_nodes(model, {("", "Gather"): gather})
    singles = {name: numpy_helper.from_array(doubles[name].astype(np.float32), name) for name in tables}
    return with_fields(result, initializer=[singles.get(t.name, t) for t in result.graph.initializer])


def _only_gathered(name: str, readers: Sequence[NodeProto]) -> bool:
    return bool(readers) and all(node.op_type == "Gather" and node.input[0] == name for node in readers)
