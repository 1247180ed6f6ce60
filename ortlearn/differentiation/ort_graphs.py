"""Graphs for onnxruntime-training's C++ builder: gradient paths and required forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, helper

from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    copy_model,
    graph_names,
    node_inputs,
    opset_versions,
)
from .ort_rewrites.gradient_path import gradient_nodes

__all__ = [
    "add_zero_gradients",
    "explicit_permutations",
    "names_with_gradient",
]


def names_with_gradient(
    model: ModelProto, outputs: Sequence[str], wrt: Sequence[str], types: Mapping[str, TensorType]
) -> list[str]:
    """Return the names of ``wrt`` that an output depends on."""
    nodes = gradient_nodes(model, outputs, wrt, types)
    read = set(outputs).union(*(node_inputs(node) for node in nodes))
    return [name for name in wrt if name in read]


def add_zero_gradients(
    model: ModelProto, names: Sequence[str], types: Mapping[str, TensorType]
) -> ModelProto:
    """Return the model with a gradient of zeros, ``<name>_grad``, for each name.

    The C++ builder rejects a tensor that no output depends on.
    """
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    for name in names:
        dtype = helper.tensor_dtype_to_np_dtype(types[name].elem_type)
        zero = helper.make_tensor("value", types[name].elem_type, [1], [dtype.type(0)])
        op.node("ConstantOfShape", op.Shape(name), outputs=[f"{name}_grad"], value=zero)
    return append_nodes(model, op)


def explicit_permutations(model: ModelProto, types: Mapping[str, TensorType]) -> ModelProto:
    """Return the model with the attribute ``perm`` of every Transpose, which the C++ builder requires."""
    model = copy_model(model)
    for node in model.graph.node:
        known = types.get(node.input[0]) if node.op_type == "Transpose" else None
        if known is not None and known.shape == ():
            node.op_type = "Identity"
            del node.attribute[:]
        elif known is not None and known.shape is not None and not node.attribute:
            node.attribute.append(helper.make_attribute("perm", list(range(len(known.shape)))[::-1]))
    return model
