"""Convert float16 and bfloat16 models to float32 for training."""

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, numpy_helper

from ..graphs import copy_model, subgraphs
from .weight_locations import HALVES

#: Attributes whose values are element types.
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")


def with_float32(model: ModelProto) -> ModelProto:
    """Return a model without functions, with float16 and bfloat16 converted to float32."""
    result = copy_model(model)
    _widen_graph(result.graph)
    return result


def _widen_graph(graph: GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        _widen_type(value.type)
    tensors = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in TYPE_ATTRIBUTES and attribute.i in HALVES:
                attribute.i = TensorProto.FLOAT
            tensors += [attribute.t] if attribute.type == attribute.TENSOR else []
        for inner in subgraphs(node):
            _widen_graph(inner)
    for tensor in [tensor for tensor in tensors if tensor.data_type in HALVES]:
        array = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _widen_type(kind: TypeProto) -> None:
    which = kind.WhichOneof("value")
    if which == "tensor_type" and kind.tensor_type.elem_type in HALVES:
        kind.tensor_type.elem_type = TensorProto.FLOAT
    elif which in ("sequence_type", "optional_type"):
        _widen_type(getattr(kind, which).elem_type)
