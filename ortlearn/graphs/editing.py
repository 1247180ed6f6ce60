"""Pure functions on ``onnx.ModelProto``: each returns a new model and does not change its argument."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from .builder import GraphBuilder
from .nodes import copy_node, node_inputs, subgraphs
from .queries import opset_versions

__all__ = [
    "append_nodes",
    "copy_model",
    "make_initializers_of",
    "make_inputs_of",
    "map_names",
    "map_node",
    "name_nodes",
    "renamed_node",
    "set_initializers",
    "with_fields",
]


def copy_model(model: ModelProto) -> ModelProto:
    """Return a deep copy of a model."""
    copied = ModelProto()
    copied.CopyFrom(model)
    return copied


def set_initializers(model: ModelProto, arrays: Mapping[str, np.ndarray]) -> ModelProto:
    """Return the model with new values for some of its initializers."""
    model = copy_model(model)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, array in arrays.items():
        tensor = tensors[name]
        old = tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if old != (array.shape, array.dtype):
            raise ValueError(
                f"Initializer {name!r} has shape and type {old}, got {(array.shape, array.dtype)}."
            )
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
    return model


def map_names(model: ModelProto, mapping: Mapping[str, str]) -> ModelProto:
    """Return the model with tensors renamed, in subgraphs too.

    A name that a subgraph defines itself is not changed, since it shadows the outer one.
    """
    model = copy_model(model)
    _map_graph(model.graph, mapping)
    return model


def _map_graph(graph: GraphProto, mapping: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = mapping.get(value.name, value.name)
    for node in graph.node:
        map_node(node, mapping)


def map_node(node: NodeProto, mapping: Mapping[str, str]) -> None:
    """Rename the tensors of a node, in subgraphs too; the node changes in place."""
    node.input[:] = [mapping.get(name, name) for name in node.input]
    node.output[:] = [mapping.get(name, name) for name in node.output]
    for inner in subgraphs(node):
        own = {value.name for value in (*inner.input, *inner.initializer)}
        own |= {name for child in inner.node for name in child.output}
        _map_graph(inner, {old: new for old, new in mapping.items() if old not in own})


def renamed_node(node: NodeProto, mapping: Mapping[str, str]) -> NodeProto:
    """Return a node with tensors renamed, in subgraphs too; the same node if it has no such tensor."""
    if not mapping or mapping.keys().isdisjoint((*node_inputs(node), *node.output)):
        return node
    renamed = copy_node(node)
    map_node(renamed, mapping)
    return renamed


def name_nodes(model: ModelProto) -> ModelProto:
    """Return the model with a unique name on every node of the main graph."""
    model = copy_model(model)
    seen: set[str] = set()
    for index, node in enumerate(model.graph.node):
        name = node.name or f"{node.op_type}_{index}"
        while name in seen:
            name = f"{name}_{index}"
        node.name = name
        seen.add(name)
    return model


def with_fields(
    model: ModelProto, opsets: Mapping[str, int] | None = None, **fields: Iterable[Any]
) -> ModelProto:
    """Return the model with replaced nodes, inputs, outputs, initializers or types of its main graph."""
    result = ModelProto()
    _copy_fields(model, result, {"graph"})
    _copy_fields(model.graph, result.graph, fields)  # replaced fields may be large
    for name, values in fields.items():
        getattr(result.graph, name).extend(values)
    known = opset_versions(model)
    for domain, version in (opsets or {}).items():
        if domain not in known:
            result.opset_import.add(domain=domain, version=version)
    return result


def _copy_fields(source: Any, target: Any, left_out: Container[str]) -> None:
    """Copy the fields of a model or a graph, except some, to an empty one."""
    for field, value in source.ListFields():
        if field.name in left_out:
            continue
        if isinstance(value, int | float | str | bytes):
            setattr(target, field.name, value)
        else:
            getattr(target, field.name).MergeFrom(value)


def append_nodes(
    model: ModelProto,
    builder: GraphBuilder,
    *,
    inputs: Sequence[ValueInfoProto] = (),
    outputs: Sequence[ValueInfoProto] | None = None,
    first: bool = False,
) -> ModelProto:
    """Return the model with the nodes and constants of a builder after its own, or before if ``first``."""
    graph = model.graph
    nodes = [*builder.nodes, *graph.node] if first else [*graph.node, *builder.nodes]
    return with_fields(
        model,
        builder.opsets,
        node=nodes,
        initializer=[*graph.initializer, *builder.initializers],
        input=[*graph.input, *inputs],
        output=graph.output if outputs is None else outputs,
    )


def make_inputs_of(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with some initializers turned into inputs, after the others.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    names : sequence of str
        Initializers.

    Returns
    -------
    onnx.ModelProto
        Model with more inputs.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.graphs import make_inputs_of
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
    ...     { z = MatMul (x, w) y = Add (z, b) }''')
    >>> [value.name for value in make_inputs_of(model, ["b", "w"]).graph.input]
    ['x', 'b', 'w']
    """
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    declared = {value.name for value in graph.input}
    new = [tensors[name] for name in names if name not in declared]
    infos = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in new]
    kept = [tensor for tensor in graph.initializer if tensor.name not in names]
    return with_fields(model, input=[*graph.input, *infos], initializer=kept)


def make_initializers_of(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """Return the model with some inputs turned into initializers of zeros, in the order given."""
    graph = model.graph
    values = {value.name: value.type.tensor_type for value in graph.input}
    tensors = list(graph.initializer)
    for name in names:
        shape = [dim.dim_value for dim in values[name].shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(values[name].elem_type)
        tensors.append(numpy_helper.from_array(np.zeros(shape, dtype=dtype), name))
    inputs = [value for value in graph.input if value.name not in names]
    return with_fields(model, input=inputs, initializer=tensors)
