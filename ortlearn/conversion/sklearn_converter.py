"""scikit-learn -> ONNX, by skl2onnx. The only module that imports it, when it is first used."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, version_converter
from sklearn.base import BaseEstimator

from ..exceptions import ConversionError
from ..graphs import (
    copy_model,
    graph_names,
    map_names,
)
from ..quiet import quiet
from .converters import CONVERTERS, SHAPES
from .corrections import correct_graph
from .decompositions import decompose_operators
from .double import compares_in_double, is_double, to_double
from .inputs.first_readers import first_readers, with_positions
from .inputs.inputs import InputSchema, matrix_schema
from .inputs.single_columns import take_columns_directly
from .opposite_columns import merge_opposite_columns
from .output_shapes import with_computed_shapes
from .preparation.convertible import conversion_options, convertible
from .untying import untied
from .versions import ML_OPSET, OPSET, pin_versions
from .weights.fitted_attributes import fitted_arrays

__all__ = ["sklearn_to_onnx"]

#: Name of an input while skl2onnx writes the graph: it changes names that are no identifiers.
INPUT = "ortlearn_input_{}"


def sklearn_to_onnx(
    estimator: BaseEstimator, n_features: int | InputSchema | None, dtype: Any = np.float32
) -> ModelProto:
    """Convert a fitted estimator at the pinned opset, its fused linear operators decomposed.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator, transformer or pipeline.
    n_features : int or InputSchema
        Number of columns of X, or the inputs of the graph.
    dtype : dtype, default=numpy.float32
        Type of the graph's numbers and weights, float32 or float64.

    Returns
    -------
    onnx.ModelProto
        Graph with one input ``X`` of shape (None, n_features), or with the inputs asked for.

    Raises
    ------
    ConversionError
        If skl2onnx cannot convert the estimator.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion import sklearn_to_onnx
    >>> model = sklearn_to_onnx(Ridge().fit([[0.0], [1.0]], [0.0, 1.0]), n_features=1)
    >>> [node.op_type for node in model.graph.node]
    ['MatMul', 'Add']
    """
    schema = n_features if isinstance(n_features, InputSchema) else matrix_schema(n_features, dtype)
    if np.dtype(dtype) != np.float64:
        return _convert(estimator, schema)
    model = failure = None
    try:
        model = _convert(estimator, schema)
    except ConversionError as error:
        failure = error
    if model is not None and is_double(model):
        return model
    try:
        exact = [array.values for array in fitted_arrays(estimator)]
        if model is not None and any(compares_in_double(node) for node in model.graph.node):
            wide = to_double(model, exact)  # a conversion in float32 would round their thresholds
            if is_double(wide):
                return wide
        return to_double(_convert(estimator, schema.narrowed()), exact)
    except ConversionError:
        if failure is not None:
            raise failure from failure.__cause__
    assert model is not None
    return model


def _convert(estimator: BaseEstimator, schema: InputSchema) -> ModelProto:
    from skl2onnx import convert_sklearn
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    arguments = {
        "name": type(estimator).__name__,  # one drawn at random by default
        "initial_types": _initial_types(schema),
        "target_opset": {"": OPSET, "ai.onnx.ml": ML_OPSET},
        "custom_conversion_functions": CONVERTERS,
        "custom_shape_calculators": SHAPES,
    }
    name = type(estimator).__name__
    if _is_given_text(estimator, schema):
        raise ConversionError(_text_refusal(name))
    estimator = convertible(with_positions(estimator, schema.positions()))
    options = conversion_options(estimator)
    try:
        with quiet():
            try:
                model = convert_sklearn(estimator, options=options, **arguments)
            except NameError:  # a classifier whose converter has no such option
                # skl2onnx has added options of members to those it was given
                options = conversion_options(estimator) or {}
                options.pop(id(estimator), None)
                model = convert_sklearn(estimator, options=options or None, **arguments)
    except (MissingConverter, MissingShapeCalculator) as error:
        raise ConversionError(
            f"{name} has a step that skl2onnx does not convert: {str(error).splitlines()[0]} "
            "Replace the step, or register a converter with skl2onnx.update_registered_converter."
        ) from error
    except Exception as error:  # skl2onnx raises errors of every kind
        raise ConversionError(_refusal(estimator, name, schema, error)) from error
    model = _with_input_names(model, schema)
    model = decompose_operators(_with_named_rows(correct_graph(_at_opset(pin_versions(model)))))
    model = untied(model, estimator)
    model = take_columns_directly(merge_opposite_columns(model))
    return with_computed_shapes(model)


def _refusal(estimator: BaseEstimator, name: str, schema: InputSchema, error: Exception) -> str:
    """Say why skl2onnx cannot convert an estimator, in terms of its rows where they are the reason."""
    one_matrix = type(error).__name__ == "InvalidInputLengthException"
    text = all(item.known.elem_type == TensorProto.STRING for item in schema.inputs)
    if text and (one_matrix or "wrong type" in str(error)) and not _reads_text(estimator, schema):
        return _text_refusal(name)
    if one_matrix:
        return (
            f"{name} takes one matrix in ONNX, not columns of several kinds: put what encodes the "
            f"columns before it, as in make_pipeline(make_column_transformer(...), {name}(...))."
        )
    parts = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    if any(_has_temperature(part) for part in (estimator, *parts)):
        return (
            "CalibratedClassifierCV(method='temperature') has no form in ONNX that skl2onnx writes: "
            "calibrate by method='sigmoid' or method='isotonic'."
        )
    return f"{name} cannot be converted by skl2onnx: {error}"


def _text_refusal(name: str) -> str:
    return (
        f"{name} takes numbers, and X has text: pass numbers, such as X.astype(float) where the text is "
        f"numbers, or put what encodes it before, as in make_pipeline(OneHotEncoder(), {name}(...))."
    )


def _is_given_text(estimator: BaseEstimator, schema: InputSchema) -> bool:
    """Return whether a support vector machine would take all of X as text: its converter asks for no type."""
    text = all(item.known.elem_type == TensorProto.STRING for item in schema.inputs)
    return text and type(estimator).__module__.startswith("sklearn.svm")


def _has_temperature(part: Any) -> bool:
    """Tell whether an estimator calibrates by a temperature."""
    return type(part).__name__ == "CalibratedClassifierCV" and part.method == "temperature"


def _reads_text(estimator: BaseEstimator, schema: InputSchema) -> bool:
    """Tell whether something inside encodes columns."""
    readers = first_readers(estimator, range(schema.n_features or len(schema.inputs)))
    return any(hasattr(reader.step, "categories_") for reader in readers)


def _with_named_rows(model: ModelProto) -> ModelProto:
    """Return the model with a name for the number of rows: what is known to be equal needs no check."""
    model = copy_model(model)
    for value in (*model.graph.input, *model.graph.output):
        dims = value.type.tensor_type.shape.dim
        if dims and not dims[0].HasField("dim_value"):
            dims[0].dim_param = "N"
    del model.graph.value_info[:]
    return model


def _initial_types(schema: InputSchema) -> list[tuple[str, Any]]:
    """Return the inputs of a graph as skl2onnx declares them."""
    from skl2onnx.common import data_types

    kinds: dict[int, Any] = {
        TensorProto.FLOAT: data_types.FloatTensorType,
        TensorProto.DOUBLE: data_types.DoubleTensorType,
        TensorProto.INT64: data_types.Int64TensorType,
        TensorProto.STRING: data_types.StringTensorType,
    }
    names = ["X"] if schema.is_matrix else [INPUT.format(i) for i in range(len(schema.inputs))]
    return [
        (name, kinds[item.known.elem_type]([None, *(item.known.shape or ())[1:]]))
        for name, item in zip(names, schema.inputs, strict=True)
    ]


def _with_input_names(model: ModelProto, schema: InputSchema) -> ModelProto:
    """Return the model with its inputs named like columns, whatever characters these names have."""
    if schema.is_matrix:
        return model
    own = {INPUT.format(i): item.name for i, item in enumerate(schema.inputs)}
    names = graph_names(model.graph)
    renamed = dict(own)
    for name in sorted(names & set(own.values())):
        renamed[name] = next(
            f"{name}_{i}" for i in count(1) if f"{name}_{i}" not in names | set(own.values())
        )
    return map_names(model, renamed)


def _at_opset(model: ModelProto) -> ModelProto:
    """Return the model at the pinned opset: skl2onnx declares the oldest one that has its operators."""
    try:
        return version_converter.convert_version(model, OPSET)
    except Exception:  # onnx raises errors of every kind; the model is valid as it is
        return model
