"""Graphs for onnxruntime-training's C++ builder: the path of a gradient, and forms that it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto, helper

from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    copy_model,
    graph_names,
    node_inputs,
    opset_versions,
)

__all__ = [
    "add_zero_gradients",
    "constant_names",
    "explicit_permutations",
    "is_float",
    "names_with_gradient",
    "gradient_nodes",
]

_NOT_FLOATS = {TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.STRING}


def gradient_nodes(
    model: ModelProto, outputs: Iterable[str], wrt: Iterable[str], types: Mapping[str, TensorType]
) -> list[NodeProto]:
    """Return the nodes that a gradient passes, in order.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    outputs : iterable of str
        Where the path ends.
    wrt : iterable of str
        Where the path begins.
    types : mapping of str to TensorType
        What is known of the tensors; integers, booleans and text carry no gradient.

    Returns
    -------
    list of onnx.NodeProto
        Nodes that depend on ``wrt`` and that ``outputs`` depend on.
    """

    def carrying(names: Iterable[str]) -> set[str]:
        return {name for name in names if name and is_float(types.get(name))}

    needed, before = set(outputs), []
    for node in reversed(model.graph.node):
        if not needed.isdisjoint(carrying(node.output)):
            before.append(node)
            needed |= carrying(node_inputs(node))
    reached, found = set(wrt), []
    for node in reversed(before):
        if not reached.isdisjoint(node_inputs(node)):
            found.append(node)
            reached |= carrying(node.output)
    return found


def is_float(known: TensorType | None) -> bool:
    """Return whether a tensor may carry a gradient."""
    return known is None or known.elem_type not in _NOT_FLOATS


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
    """Return the model with a node that makes ``<name>_grad``, zero, for each name.

    The C++ builder refuses a tensor that no output depends on.
    """
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    for name in names:
        dtype = helper.tensor_dtype_to_np_dtype(types[name].elem_type)
        zero = helper.make_tensor("value", types[name].elem_type, [1], [dtype.type(0)])
        op.node("ConstantOfShape", op.Shape(name), outputs=[f"{name}_grad"], value=zero)
    return append_nodes(model, op)


def explicit_permutations(model: ModelProto, types: Mapping[str, TensorType]) -> ModelProto:
    """Return the model with the attribute ``perm`` of every Transpose, which the C++ builder asks for."""
    model = copy_model(model)
    for node in model.graph.node:
        known = types.get(node.input[0]) if node.op_type == "Transpose" else None
        if known is not None and known.shape == ():
            node.op_type = "Identity"
            del node.attribute[:]
        elif known is not None and known.shape is not None and not node.attribute:
            node.attribute.append(helper.make_attribute("perm", list(range(len(known.shape)))[::-1]))
    return model


def constant_names(model: ModelProto) -> set[str]:
    """Return the names of what has one value: initializers that are no inputs, and Constant nodes."""
    names = {tensor.name for tensor in model.graph.initializer}
    names |= {node.output[0] for node in model.graph.node if node.op_type == "Constant"}
    return names - {value.name for value in model.graph.input}
