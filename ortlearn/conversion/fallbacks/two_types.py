"""Pipelines whose steps before the last one are computed in float64, the last one in float32."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from sklearn.pipeline import Pipeline

from ...exceptions import ConversionError
from ...graphs import copy_model, graph_names, map_names, opset_versions, value_types
from ...graphs.editing import replace_field
from ..inputs.inputs import InputSchema, matrix_schema
from ..sklearn_converter import sklearn_to_onnx

__all__ = ["convert_in_two_types", "join_in_float32"]


def convert_in_two_types(pipeline: Pipeline, schema: InputSchema) -> ModelProto:
    """Convert a fitted pipeline: float64 up to the input of its last step, float32 from there.

    Parameters
    ----------
    pipeline : Pipeline
        At least two fitted steps.
    schema : InputSchema
        Inputs of the pipeline, in float64.

    Returns
    -------
    onnx.ModelProto
        Graph.

    Raises
    ------
    ConversionError
        If a step has no form in ONNX, or the last one is not given a matrix of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.conversion.fallbacks.two_types import convert_in_two_types
    >>> from ortlearn.conversion.inputs.inputs import matrix_schema
    >>> X = 1e9 + np.arange(4.0)[:, None]
    >>> model = make_pipeline(StandardScaler(), Ridge()).fit(X, X.ravel())
    >>> graph = convert_in_two_types(model, matrix_schema(1, np.float64)).graph
    >>> [node.op_type for node in graph.node]
    ['Sub', 'Div', 'Cast', 'MatMul', 'Add']
    """
    front = sklearn_to_onnx(Pipeline(pipeline.steps[:-1]), schema, np.float64)
    return join_in_float32(front, pipeline.steps[-1][1])


def join_in_float32(front: ModelProto, last: Any) -> ModelProto:
    """Return the graph of some steps in float64, followed by the last one in float32.

    Parameters
    ----------
    front : onnx.ModelProto
        Graph of the steps before.
    last : estimator
        Fitted last step.

    Returns
    -------
    onnx.ModelProto
        Graph with the inputs of the first and the outputs of the second.

    Raises
    ------
    ConversionError
        If the last step has no form in ONNX, or is not given a matrix of numbers.
    """
    names = [value.name for value in front.graph.output]
    given = value_types(front).get(names[0])
    if len(names) != 1 or given is None or given.elem_type != TensorProto.DOUBLE:
        raise ConversionError("The steps before the last one do not end with a matrix of float64.")
    declared = given.shape[-1] if given.shape else None
    width = getattr(last, "n_features_in_", declared if isinstance(declared, int) else None)
    rest = sklearn_to_onnx(last, matrix_schema(width), np.float32)
    if opset_versions(front).get("") != opset_versions(rest).get(""):
        raise ConversionError("The steps of the pipeline do not convert to the same opset.")
    return _append(front, names[0], rest)


def _append(front: ModelProto, end: str, rest: ModelProto) -> ModelProto:
    """Return one graph after another, which takes an output of the first as float32."""
    entry = rest.graph.input[0].name
    inputs = {value.name for value in front.graph.input}
    taken = graph_names(front.graph) | graph_names(rest.graph)
    names = itertools.filterfalse(taken.__contains__, (f"front_{i}" for i in itertools.count()))
    shared = graph_names(front.graph) & graph_names(rest.graph)
    in_front = {name: next(names) for name in sorted(shared - inputs)}
    in_rest = {name: next(names) for name in sorted(shared & inputs)} | {entry: next(names)}
    front, rest = map_names(front, in_front), map_names(rest, in_rest)
    cast = helper.make_node("Cast", [in_front.get(end, end)], [in_rest[entry]], to=TensorProto.FLOAT)
    result = copy_model(rest)
    replace_field(result.graph.node, [*front.graph.node, cast, *rest.graph.node])
    replace_field(result.graph.initializer, [*front.graph.initializer, *rest.graph.initializer])
    replace_field(result.graph.input, front.graph.input)
    del result.graph.value_info[:]
    own = {item.domain for item in rest.opset_import}
    result.opset_import.extend(item for item in front.opset_import if item.domain not in own)
    return result
