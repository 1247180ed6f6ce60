"""Replace an operator by the function body in its specification."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    NodeProto,
    TensorProto,
    TypeProto,
    defs,
    helper,
    numpy_helper,
)

from ..exceptions import GradientError
from ..graphs import make_value_info, node_inputs, subgraphs, value_types
from ..graphs.nodes import attributes_of, copy_node
from .gradient_builder import GradientBuilder
from .registry import normalize_domain
from .types.inference import LARGEST_SHAPE, infer_types

__all__ = ["expand_node", "add_types"]


def expand_node(op: GradientBuilder, node: NodeProto) -> list[NodeProto] | None:
    """Return the nodes of an operator's function body, with unique names and known types."""
    is_causal = node.op_type == "Attention" and attributes_of(node).get("is_causal")
    if is_causal and not node.domain and any(node.input[4:5]):
        raise GradientError(
            f"Cannot differentiate operator 'Attention' (node {node.name!r}): with is_causal and past keys, "
            "onnxruntime and the specification of ONNX mask different keys. Write the mask as attn_mask."
        )
    function = _function_of(op, node)
    if function is None:
        return None
    mapping = dict.fromkeys((*function.input, *function.output), "")
    mapping.update(zip(function.input, node.input, strict=False))
    mapping.update(zip(function.output, node.output, strict=False))
    for inner in function.node:
        for name in inner.output:
            if not mapping.get(name):
                mapping[name] = op.unique(f"{node.op_type}_{name}")
    attributes = {a.name: a for a in function.attribute_proto}
    attributes.update(_defaults(node))
    attributes.update({a.name: a for a in node.attribute})
    body = [_instantiate(op, inner, mapping, attributes) for inner in function.node]
    for opset in function.opset_import:
        if opset.domain and opset.domain != "ai.onnx":
            op.opsets.setdefault(opset.domain, opset.version)
    add_types(op, body)
    return body


def _function_of(op: GradientBuilder, node: NodeProto) -> FunctionProto | None:
    domain = normalize_domain(node.domain)
    version = op.opsets.get(domain, 1)
    if not defs.has(node.op_type, domain):
        return None
    try:
        schema: Any = defs.get_schema(node.op_type, version, domain)
    except defs.SchemaError:
        return None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= op.opset]
        content = schema.get_function_with_opset_version(max(versions)) if versions else None
        return FunctionProto.FromString(content) if content else None
    if not schema.has_context_dependent_function:
        return None
    types = [_type_proto(op, name).SerializeToString() for name in node.input]
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= op.opset]
    if not versions:
        return None
    content = schema.get_context_dependent_function_with_opset_version(
        max(versions), node.SerializeToString(), types
    )
    return FunctionProto.FromString(content) if content else None


def _type_proto(op: GradientBuilder, name: str) -> TypeProto:
    known = op.type(name) if name else None
    return TypeProto() if known is None else make_value_info(name, known).type


def _defaults(node: NodeProto) -> dict[str, AttributeProto]:
    schema = defs.get_schema(node.op_type, domain=normalize_domain(node.domain))
    declared = schema.attributes.items()
    return {name: a.default_value for name, a in declared if a.default_value.type != AttributeProto.UNDEFINED}


def _instantiate(op: Any, inner: NodeProto, mapping: dict[str, str], attributes: dict) -> NodeProto:
    inputs, outputs = ([mapping.get(name, name) for name in names] for names in (inner.input, inner.output))
    node = copy_node(inner, inputs, outputs)
    node.name = op.unique(f"node_{inner.op_type}")
    while node.input and not node.input[-1]:
        del node.input[-1]
    _bind_attributes(node, attributes)
    for graph in subgraphs(node):
        own = {value.name for value in graph.input}
        outer = {old: new for old, new in mapping.items() if old not in own}
        inner_nodes = [_instantiate(op, child, outer, attributes) for child in graph.node]
        del graph.node[:]
        graph.node.extend(inner_nodes)
        for value in graph.output:
            value.name = outer.get(value.name, value.name)
    return node


def _bind_attributes(node: NodeProto, attributes: dict[str, AttributeProto]) -> None:
    bound = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            bound.append(attribute)
        elif attribute.ref_attr_name in attributes:
            value = AttributeProto()
            value.CopyFrom(attributes[attribute.ref_attr_name])
            value.name = attribute.name
            bound.append(value)
    bound = [AttributeProto.FromString(a.SerializeToString()) for a in bound]
    del node.attribute[:]
    node.attribute.extend(bound)


def add_types(op: GradientBuilder, body: list[NodeProto]) -> None:
    """Add the inferred types of the outputs of nodes to a builder."""
    made = {name for node in body for name in node.output}
    read = sorted({name for node in body for name in node_inputs(node)} - made)
    inputs = [make_value_info(name, op.type(name)) for name in read if op.type(name)]
    constants = [
        numpy_helper.from_array(v, name) for name in read if (v := _shape_like(op, name)) is not None
    ]
    noted = [make_value_info(name, op.type(name)) for name in sorted(made) if op.shape(name) is not None]
    graph = helper.make_graph(body, "body", inputs, [], constants, value_info=noted)
    opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
    model = infer_types(helper.make_model(graph, opset_imports=opsets))
    for name, known in value_types(model, infer=False).items():
        if name in made and (known.shape is not None or op.type(name) is None):
            op.set_type(name, known.elem_type, known.shape)
    for node in body:
        if node.op_type == "Constant":
            op.add_constant_node(node)


def _shape_like(op: GradientBuilder, name: str) -> np.ndarray | None:
    """Return the value of a small integer constant, which may be a shape, or None."""
    known, value = op.type(name), None
    if known is not None and known.elem_type in (TensorProto.INT32, TensorProto.INT64):
        value = op.value(name)
    return value if value is not None and value.size <= LARGEST_SHAPE else None
