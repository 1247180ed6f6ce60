"""Convert float32 graphs to float64, for accurate finite differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ortlearn.graphs import TensorType, copy_model, subgraphs, value_types

__all__ = ["in_float64"]

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
#: Operators of the default domain that only know float32.
_SINGLE = {"TfIdfVectorizer"}
#: Operators of ai.onnx.ml that take and give numbers, where their types are not known.
_NUMBERS = {
    "Binarizer",
    "Imputer",
    "LinearRegressor",
    "Normalizer",
    "Scaler",
    "SVMRegressor",
    "TreeEnsembleRegressor",
}


def in_float64(model: ModelProto) -> ModelProto:
    """Return a float32 graph in float64.

    Operators that exist in float32 only (ai.onnx.ml, TfIdfVectorizer) stay, between casts. They may
    choose leaves or categories; a slope through them is not exact.
    """
    types = value_types(model)
    model = copy_model(model)
    for graph in _graphs(model.graph):
        _declare(graph)
        for node in graph.node:
            _retype(node)
    _cast_around(model.graph, types)
    return model


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)


def _declare(graph: GraphProto) -> None:
    """Change inputs, outputs and initializers to float64, and remove the other types."""
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
    for tensor in graph.initializer:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(_double(tensor))
    del graph.value_info[:]


def _double(tensor: TensorProto) -> TensorProto:
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def _retype(node: NodeProto) -> None:
    if node.domain not in ("", "com.microsoft"):
        return
    if node.op_type == "ConstantOfShape" and not node.attribute:
        node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1), "value")))
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype") and attribute.i == FLOAT:
            attribute.i = DOUBLE
        elif attribute.HasField("t") and attribute.t.data_type == FLOAT:
            attribute.t.CopyFrom(_double(attribute.t))
        elif attribute.name in ("value_float", "value_floats"):
            values = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            tensor = numpy_helper.from_array(np.asarray(values, dtype=np.float64), "value")
            attribute.CopyFrom(helper.make_attribute("value", tensor))


def _cast_around(graph: GraphProto, types: Mapping[str, TensorType]) -> None:
    """Insert casts around operators that stay in float32."""
    nodes: list[NodeProto] = []
    for index, node in enumerate(graph.node):
        if node.domain != "ai.onnx.ml" and node.op_type not in _SINGLE:
            nodes.append(node)
            continue
        after = []
        for position, name in enumerate(node.input):
            if _is_float(node, types.get(name)):
                single = f"{name}_single_{index}_{position}"
                nodes.append(helper.make_node("Cast", [name], [single], to=FLOAT))
                node.input[position] = single
        for position, name in enumerate(node.output):
            if _is_float(node, types.get(name)):
                single = f"{name}_single_{index}"
                after.append(helper.make_node("Cast", [single], [name], to=DOUBLE))
                node.output[position] = single
        nodes += [node, *after]
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _is_float(node: NodeProto, known: TensorType | None) -> bool:
    return node.op_type in _NUMBERS if known is None else known.elem_type == FLOAT
