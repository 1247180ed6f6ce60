"""Shapes of outputs, where a converter declares others than the graph computes."""

from __future__ import annotations

from onnx import ModelProto

from ..graphs import copy_model, make_value_info, value_types

__all__ = ["with_computed_shapes"]


def with_computed_shapes(model: ModelProto) -> ModelProto:
    """Return the model with the shape of each output as shape inference finds it.

    skl2onnx declares the number of columns from the estimator's attributes, not always from the right one
    (PLSRegression, trees of several targets). A size that inference does not find stays as declared.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn.conversion.output_shapes import with_computed_shapes
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,9] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> with_computed_shapes(model).graph.output[0].type.tensor_type.shape.dim[1].dim_value
    1
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
        declared = value.type.tensor_type.shape.dim
        sizes = [d if isinstance(d, int) else None for d in known.shape]
        same_rank = len(declared) == len(sizes)
        if same_rank and all(
            size in (None, dim.dim_value) for size, dim in zip(sizes, declared, strict=True)
        ):
            continue
        if same_rank:  # what is not known is as declared
            known = known._replace(
                shape=tuple(
                    size if size is not None else (dim.dim_value or dim.dim_param or None)
                    for size, dim in zip(sizes, declared, strict=True)
                )
            )
        value.CopyFrom(make_value_info(value.name, known))
    return result
