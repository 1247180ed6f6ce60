"""Declared sizes of tensors that mean an unknown size."""

from onnx import GraphProto, ModelProto, TypeProto

from ..graphs import copy_model, subgraphs

#: Names that exporters write for unnamed sizes; two of them may differ.
PLACEHOLDERS = {"?", "-1", "*", "None", "none", "null", "unknown", "unk"}


def without_placeholders(model: ModelProto) -> ModelProto:
    """Return a copy of a model in which negative sizes, and names such as ``?``, are unknown sizes."""
    result = copy_model(model)
    _clear(result.graph)
    return result


def _clear(graph: GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        _clear_type(value.type)
    for node in graph.node:
        for inner in subgraphs(node):
            _clear(inner)


def _clear_type(kind: TypeProto) -> None:
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        _clear_type(getattr(kind, which).elem_type)
    if which not in ("tensor_type", "sparse_tensor_type"):
        return
    for dim in getattr(kind, which).shape.dim:
        if (dim.HasField("dim_value") and dim.dim_value < 0) or dim.dim_param.strip() in PLACEHOLDERS:
            dim.Clear()
