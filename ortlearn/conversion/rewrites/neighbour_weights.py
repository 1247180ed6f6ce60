"""The weights of nearest neighbours by distance, which skl2onnx takes from distances of the wrong sign."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto

from ...graphs import GraphBuilder, initializer_arrays, replace_nodes

__all__ = ["correct_neighbour_weights"]


def correct_neighbour_weights(model: ModelProto) -> ModelProto:
    """Return the model with weights 1 / d of its nearest neighbours, as scikit-learn has them.

    skl2onnx negates the smallest distances, which are positive, and takes the larger one of the
    result and 1e-6: every weight comes out as 1e6. Nothing else has a use for that form.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.

    Returns
    -------
    onnx.ModelProto
        Model without these changes of sign.
    """
    arrays = initializer_arrays(model)
    producers = {name: node for node in model.graph.node for name in node.output}
    readers: dict[str, list[NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)

    def is_nearest(name: str) -> bool:
        node = producers.get(name)
        if node is None or node.op_type != "TopK" or name != node.output[0]:
            return False
        return any(a.name == "largest" and a.i == 0 for a in node.attribute)

    def is_floored(node: NodeProto) -> bool:
        floors = [arrays[name] for name in node.input if name in arrays]
        return node.op_type == "Max" and any(floor.size == 1 and 0 < floor.item() <= 1e-5 for floor in floors)

    def multiply(node: NodeProto, op: GraphBuilder) -> bool:
        distances, sign = node.input
        if not np.array_equal(arrays.get(sign, np.zeros(1)), [-1]) or not is_nearest(distances):
            return False
        if not all(is_floored(reader) for reader in readers.get(node.output[0], [])):
            return False
        op.Identity(distances, outputs=[node.output[0]])
        return True

    return replace_nodes(model, {("", "Mul"): multiply})
