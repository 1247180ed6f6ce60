"""Types of tensors, including those that onnx does not infer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

from ...graphs import (
    TensorType,
    copy_model,
    make_value_info,
    node_inputs,
    opset_versions,
    subgraphs,
    value_types,
)
from ...graphs.editing import with_fields
from ...graphs.nodes import all_nodes
from .dimensions import broadcast_shapes
from .einsum_terms import squeeze_operands
from .fused_types import HIDDEN, OTHER_TYPES

__all__ = ["LARGEST_SHAPE", "infer_body", "infer_types", "output_type"]

_UNARY = set(
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Identity Log Neg Not Reciprocal "
    "Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Relu Softmax LogSoftmax CumSum Trilu".split()
)
_BINARY = set("Add Sub Mul Div Pow Sum Max Min Mean Mod And Or".split())
#: Largest size of constants that shape inference uses.
LARGEST_SHAPE = 16
_KNOWN = {("", "Loop"), *OTHER_TYPES}
_COMPARISONS = set("Equal Greater GreaterOrEqual Less LessOrEqual".split())


def output_type(
    op_type: str, types: Sequence[TensorType | None], options: Mapping[str, Any]
) -> TensorType | None:
    """Return the type of the output of a simple operator, or None if it is unknown."""
    first = types[0] if types else None
    if op_type == "Cast":
        return TensorType(options["to"], first.shape if first else None)
    if op_type == "Shape":
        rank = None if first is None or first.shape is None else len(first.shape)
        whole = options.get("start") is None and options.get("end") is None
        return TensorType(TensorProto.INT64, (rank if whole else None,))
    if first is None:
        return None
    if op_type in _UNARY:
        return first
    shapes = [known.shape if known else None for known in types]
    if op_type in _BINARY:
        return TensorType(first.elem_type, broadcast_shapes(shapes))
    if op_type in _COMPARISONS:
        return TensorType(TensorProto.BOOL, broadcast_shapes(shapes))
    if op_type == "Where" and types[1] is not None:
        return TensorType(types[1].elem_type, broadcast_shapes(shapes))
    return None


def infer_types(model: ModelProto) -> ModelProto:
    """Return a model with inferred types, including some that onnx does not infer or infers wrongly.

    These are operators of other domains, outputs of a Loop whose body keeps the shapes, and Einsum with a
    broadcast axis, whose operands are squeezed.
    """
    model = _with_attention_in(HIDDEN, _without_broadcast_operands(model))
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    missing = [n for n in model.graph.node if (n.domain, n.op_type) in _KNOWN]
    while missing:
        types = value_types(inferred, infer=False)
        found: dict[str, TensorType] = {}
        for node in missing:
            found.update(_other_types(node, types, opset_versions(model)))
        if not found:
            break
        missing = [node for node in missing if found.keys().isdisjoint(node.output)]
        inferred = shape_inference.infer_shapes(_with_types(inferred, found), data_prop=True)
    return _with_attention_in("", inferred)


def _with_attention_in(domain: str, model: ModelProto) -> ModelProto:
    """Return a model with Attention of onnx in another domain: onnx infers zero for unknown sizes."""
    old = HIDDEN if domain == "" else ""
    if not any((node.domain, node.op_type) == (old, "Attention") for node in model.graph.node):
        return model
    model = copy_model(model)
    for node in model.graph.node:
        node.domain = domain if (node.domain, node.op_type) == (old, "Attention") else node.domain
    imports = [item for item in model.opset_import if item.domain != HIDDEN]
    imports += [helper.make_opsetid(HIDDEN, 1)] if domain == HIDDEN else []
    del model.opset_import[:]
    model.opset_import.extend(imports)
    return model


def _without_broadcast_operands(model: ModelProto) -> ModelProto:
    """Return a model without any Einsum that broadcasts an axis of length one."""
    index = 0
    while index < len(model.graph.node):
        node = model.graph.node[index]
        if (node.domain, node.op_type) == ("", "Einsum"):
            # Types before this node are correct now.
            types = value_types(model)
            known = [types.get(name) for name in node.input]
            nodes = squeeze_operands(node, [None if k is None else k.shape for k in known])
            if nodes:
                rest = model.graph.node[index + 1 :]
                model = with_fields(model, node=[*model.graph.node[:index], *nodes, *rest], value_info=())
                index += len(nodes) - 1
        index += 1
    return model


def _with_types(model: ModelProto, types: Mapping[str, TensorType]) -> ModelProto:
    """Return a model that declares the types of some inner tensors."""
    infos = {name: make_value_info(name, known) for name, known in types.items()}
    others = [value for value in model.graph.value_info if value.name not in types]
    outputs = [infos.get(value.name, value) for value in model.graph.output]
    return with_fields(model, value_info=[*others, *infos.values()], output=outputs)


def infer_body(
    graph: GraphProto,
    input_types: Mapping[str, TensorType | None],
    outer: Callable[[str], TensorType | None],
    opsets: Mapping[str, int],
    constants: Callable[[str], np.ndarray | None] = lambda name: None,
) -> GraphProto:
    """Return the body of a control flow operator with inferred types.

    ``outer`` and ``constants`` return the types and the values of outer tensors, such as axes.
    """
    inner = {name for node in graph.node for name in node.output}
    read = set().union(*(node_inputs(node) for node in graph.node), {value.name for value in graph.output})
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    typed = GraphProto()
    typed.CopyFrom(graph)
    for value in typed.input:
        known = input_types.get(value.name)
        if known is not None:
            value.CopyFrom(make_value_info(value.name, known))
    for name in sorted(read - inner - own):
        known = outer(name)
        is_integer = known is not None and known.elem_type in (TensorProto.INT32, TensorProto.INT64)
        value = constants(name) if is_integer else None
        if value is not None and value.size <= LARGEST_SHAPE:
            typed.initializer.append(numpy_helper.from_array(value, name))
        elif known is not None:
            typed.input.append(make_value_info(name, known))
    # Declared types of inner tensors may be less precise than those inferred from the inputs.
    del typed.value_info[:]
    for value in typed.output:
        value.CopyFrom(make_value_info(value.name, None))
    for branch in (branch for node in all_nodes(typed) for branch in subgraphs(node)):
        for value in (*branch.value_info, *branch.output):
            for size in value.type.tensor_type.shape.dim:
                if size.dim_param:  # a name in the file, other than that of the inputs
                    size.Clear()
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(typed, opset_imports=imports)
    return infer_types(model).graph


def _other_types(node: NodeProto, types: Mapping[str, TensorType], opsets: Mapping[str, int]) -> dict:
    """Return types of outputs with unknown shapes."""
    inputs = [types.get(name) for name in node.input]
    if node.op_type == "Loop":
        results = _loop_types(node, inputs, types, opsets)
    elif not inputs or inputs[0] is None:
        return {}
    else:
        results = OTHER_TYPES[node.domain, node.op_type](node, inputs, opsets)
    return {
        name: known
        for name, known in zip(node.output, results, strict=False)
        if name and known is not None and (name not in types or types[name].shape is None)
    }


def _loop_types(node: NodeProto, inputs: Sequence, types: Mapping[str, TensorType], opsets: Any) -> list:
    """Return the types of the initial states of a Loop if its body keeps them: outputs have them too."""
    (body,) = subgraphs(node)
    names = [value.name for value in body.input[2:]]
    typed = infer_body(body, dict(zip(names, inputs[2:], strict=True)), types.get, opsets)
    known = value_types(helper.make_model(typed), infer=False)
    results = [known.get(value.name) for value in body.output[1:]]
    pairs = zip(inputs[2:], results, strict=False)
    return [first if first == result and _is_named(first) else None for first, result in pairs]


def _is_named(known: TensorType | None) -> bool:
    return known is not None and known.shape is not None and None not in known.shape
