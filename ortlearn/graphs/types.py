"""Types of the tensors of a graph, as onnx infers them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, shape_inference

from .builder import GraphBuilder, TensorType
from .editing import make_inputs_of, with_fields
from .queries import make_value_info

__all__ = ["inferred", "value_types", "without_large_constants", "written_types"]

#: Elements of the largest initializer whose values may be sizes, as those of Reshape.
LARGE_CONSTANT = 1024


def without_large_constants(model: ModelProto) -> ModelProto:
    """Return a model with inputs in place of large initializers, whose values say nothing about shapes."""
    large = [t.name for t in model.graph.initializer if math.prod(t.dims) > LARGE_CONSTANT]
    return make_inputs_of(model, large) if large else model


def inferred(model: ModelProto) -> ModelProto:
    """Return the model with inferred types, without the values of large initializers and vocabularies."""
    model = without_large_constants(model)
    if any(node.op_type == "TfIdfVectorizer" for node in model.graph.node):
        model = with_fields(model, node=map(_without_vocabulary, model.graph.node))
    return shape_inference.infer_shapes(model, data_prop=True)


def _without_vocabulary(node: NodeProto) -> NodeProto:
    """Return a node without the words that it counts, which say nothing about shapes."""
    if node.op_type != "TfIdfVectorizer":
        return node
    bare = NodeProto(op_type=node.op_type, name=node.name, input=node.input, output=node.output)
    bare.attribute.extend(item for item in node.attribute if item.name != "pool_strings")
    return bare


def _tensor_type(value: ValueInfoProto) -> TensorType | None:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or tensor.elem_type == TensorProto.UNDEFINED:
        return None
    if not tensor.HasField("shape"):
        return TensorType(tensor.elem_type)
    dims = [
        d.dim_value if d.HasField("dim_value") else (d.dim_param or None)  # None: unknown
        for d in tensor.shape.dim
    ]
    return TensorType(tensor.elem_type, tuple(dims))


def value_types(
    model: ModelProto, infer: bool = True, names: Collection[str] | None = None
) -> dict[str, TensorType]:
    """Return the known types of (some) tensors of the main graph; onnx infers them if ``infer``."""
    graph = model.graph
    if infer:
        graph = inferred(model).graph
    types = {
        tensor.name: TensorType(tensor.data_type, tuple(tensor.dims)) for tensor in model.graph.initializer
    }
    for value in (*graph.output, *graph.value_info, *graph.input):
        known = _tensor_type(value) if names is None or value.name in names else None
        if known is not None:
            types[value.name] = known
    return types


def written_types(op: GraphBuilder, known: Mapping[str, TensorType]) -> dict[str, TensorType]:
    """Return the types of the tensors that a builder has written, inferred from known ones."""
    inputs = [make_value_info(name, own) for name, own in known.items()]
    graph = helper.make_graph(op.nodes, "written", inputs, [], op.initializers)
    opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
    return value_types(helper.make_model(graph, opset_imports=opsets))
