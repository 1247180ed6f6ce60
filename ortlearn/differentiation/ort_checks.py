"""What onnxruntime-training's C++ builder gets wrong, or stops at, found before it is asked."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto, helper

from ..exceptions import GradientError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    copy_model,
    graph_names,
    node_inputs,
    opset_versions,
    subgraphs,
    value_types,
)
from .rounding import refuse_rounding

__all__ = [
    "add_zero_gradients",
    "explicit_permutations",
    "names_on_the_way",
    "nodes_on_the_way",
    "refuse_known_wrong",
]

_SCATTERS = ("ScatterElements", "ScatterND")
#: Operators, attribute, values that are right (the default first), and what to say of the others.
_WRONG_ATTRIBUTES = [
    (_SCATTERS, "reduction", (b"none",), "it reduces what it scatters"),
    (("Conv",), "auto_pad", (b"NOTSET", b"VALID"), "it chooses its padding; write pads instead of auto_pad"),
    (("MaxPool",), "storage_order", (0,), "it numbers its places by columns"),
]
_NOT_FLOATS = {TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.STRING}


def nodes_on_the_way(
    model: ModelProto, outputs: Iterable[str], wrt: Iterable[str], types: Mapping[str, TensorType]
) -> list[NodeProto]:
    """Return the nodes that a gradient goes through, in order.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    outputs : iterable of str
        Where the way ends.
    wrt : iterable of str
        Where the way begins.
    types : mapping of str to TensorType
        What is known of the tensors; integers, booleans and text carry no gradient.

    Returns
    -------
    list of onnx.NodeProto
        Nodes that depend on ``wrt`` and that ``outputs`` depend on.
    """

    def carrying(names: Iterable[str]) -> set[str]:
        return {name for name in names if name and _is_float(types.get(name))}

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


def _is_float(known: TensorType | None) -> bool:
    return known is None or known.elem_type not in _NOT_FLOATS


def names_on_the_way(
    model: ModelProto, outputs: Sequence[str], wrt: Sequence[str], types: Mapping[str, TensorType]
) -> list[str]:
    """Return the names of ``wrt`` that an output depends on."""
    nodes = nodes_on_the_way(model, outputs, wrt, types)
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
        if known is not None and known.shape is not None and not node.attribute:
            node.attribute.append(helper.make_attribute("perm", list(range(len(known.shape)))[::-1]))
    return model


def constant_names(model: ModelProto) -> set[str]:
    """Return the names of what has one value: initializers that are no inputs, and Constant nodes."""
    names = {tensor.name for tensor in model.graph.initializer}
    names |= {node.output[0] for node in model.graph.node if node.op_type == "Constant"}
    return names - {value.name for value in model.graph.input}


def refuse_known_wrong(model: ModelProto, outputs: Sequence[str], wrt: Sequence[str]) -> None:
    """Raise an error where the C++ builder is known to give a wrong gradient.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    outputs : sequence of str
        What is differentiated.
    wrt : sequence of str
        With respect to what.

    Raises
    ------
    GradientError
        If a node on the way is one of these; the message names it and says what to change.
    """
    for node in model.graph.node:
        if any(True for _ in subgraphs(node)):
            raise GradientError(
                f"onnxruntime-training does not differentiate graphs with {node.op_type} "
                f"(node {node.name!r}): it can stop the whole process. Use gradient='rules'."
            )
    refuse_rounding(model, outputs, wrt)
    types = value_types(model)
    nodes = nodes_on_the_way(model, outputs, wrt, types)
    reached = set(wrt).union(*(node.output for node in nodes))
    read = set(outputs).union(*(node_inputs(node) for node in nodes))
    constants = constant_names(model)
    for node in nodes:
        known = types.get(node.output[0])
        if node.op_type == "Concat" and known is not None and known.elem_type == TensorProto.DOUBLE:
            raise GradientError(
                f"onnxruntime-training has no float64 form of the gradient of Concat (node {node.name!r}). "
                "Use gradient='rules'."
            )
        reason = _wrong(node, types, reached, read, constants)
        if reason:
            raise GradientError(
                f"onnxruntime-training gives a wrong gradient for {node.op_type} (node {node.name!r}): "
                f"{reason}."
            )


def _differ(one: tuple | None, other: tuple | None) -> bool:
    """Tell whether two shapes are known to differ; what may differ has been expanded by then."""
    if one is None or other is None:
        return False
    known = [(a, b) for a, b in zip(one, other, strict=False) if isinstance(a, int) and isinstance(b, int)]
    return len(one) != len(other) or any(a != b for a, b in known)


def _wrong(
    node: NodeProto,
    types: Mapping[str, TensorType],
    reached: set[str],
    read: set[str],
    constants: Container[str],
) -> str | None:
    shapes = [types[name].shape if name in types else None for name in node.input]
    if node.op_type == "MatMul" and shapes[1] is not None and len(shapes[1]) == 1:
        return "its right operand is a vector; reshape it to a matrix of one column"
    if node.op_type == "Pow" and node.input[1] in reached:
        return f"its exponent {node.input[1]!r} depends on what is differentiated to"
    if node.op_type in ("Where", "Pow"):
        output = types[node.output[0]].shape if node.output[0] in types else None
        for name, shape in zip(node.input, shapes, strict=True):
            if _is_float(types.get(name)) and name in reached and _differ(shape, output):
                return f"its operand {name!r} is broadcast; expand it to the shape of the result"
    if node.op_type == "SoftmaxCrossEntropyLoss" and len(node.input) > 2 and node.input[2] in reached:
        return f"its class weights {node.input[2]!r} depend on what is differentiated to"
    if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2] not in constants:
        return f"its mode {node.input[2]!r} is not constant"
    if node.op_type == "Split" and not read.issuperset(node.output):
        return "one of its outputs is not used"
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type in _SCATTERS and node.input[0] not in reached and attributes.get("reduction") == b"add":
        return None  # what is added to constants has the gradient of what replaces them
    for op_types, name, harmless, reason in _WRONG_ATTRIBUTES:
        if node.op_type in op_types and attributes.get(name, harmless[0]) not in harmless:
            return reason
    if node.op_type == "AveragePool" and any(step != 1 for step in attributes.get("dilations", [])):
        return "it is dilated"
    return None
