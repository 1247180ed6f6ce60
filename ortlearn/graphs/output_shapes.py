"""Output shapes by shape inference."""

from __future__ import annotations

from onnx import ModelProto

from . import copy_model, make_value_info, value_types

__all__ = ["with_computed_shapes"]


def with_computed_shapes(model: ModelProto) -> ModelProto:
    """Return the model with the inferred shape of each output.

    The number of columns that skl2onnx declares is wrong for some estimators (PLSRegression, trees of several
    targets). Sizes that cannot be inferred are kept.
    """
    bare = copy_model(model)
    for value in bare.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    computed = value_types(bare)
    result = copy_model(model)
    for value in result.graph.output:
        known = computed.get(value.name)
        if known is None or known.shape is None or not value.type.HasField("tensor_type"):
            continue
        declared = tuple(d.dim_value or d.dim_param or None for d in value.type.tensor_type.shape.dim)
        shape = known.shape
        if len(shape) == len(declared):
            pairs = zip(shape, declared, strict=True)
            shape = tuple(size if isinstance(size, int) else old for size, old in pairs)
        if shape != declared:
            value.CopyFrom(make_value_info(value.name, known._replace(shape=shape)))
    return result
