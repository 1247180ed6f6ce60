"""Convert estimators without a model definition by skl2onnx, which is imported on first use."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, version_converter
from sklearn.base import is_classifier

from ..exceptions import ConversionError, limit_address
from ..graphs import TensorType, graph_names, inline_functions, map_names, opset_versions, value_types
from ..models.columns import Columns
from ..models.scores import Scores, transformation
from ..models.writer import OPSET, ModelWriter
from ..models.written_model import ML_OPSET
from ..quiet import quiet

#: Names of skl2onnx's input types by element type.
DECLARED: dict[int, str] = {
    TensorProto.FLOAT: "FloatTensorType",
    TensorProto.DOUBLE: "DoubleTensorType",
    TensorProto.INT64: "Int64TensorType",
    TensorProto.STRING: "StringTensorType",
}


class UndefinedModelError(ConversionError):
    """Error for a model, rather than a transformer, without a model definition."""


def convert(estimator: Any, inputs: Mapping[str, TensorType]) -> ModelProto:
    """Return the graph of an estimator; raise a ConversionError if skl2onnx cannot convert it."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common import data_types
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator

    name = type(estimator).__name__
    options = {id(estimator): {"zipmap": False}} if is_classifier(estimator) else None
    arguments = {
        "name": name,  # random by default
        "initial_types": [
            (key, getattr(data_types, DECLARED[known.elem_type])([None, *(known.shape or ())[1:]]))
            for key, known in inputs.items()
        ],
        "target_opset": {"": OPSET, "ai.onnx.ml": ML_OPSET},
    }
    try:
        with quiet():
            try:
                model = convert_sklearn(estimator, options=options, **arguments)
            except NameError:  # the converter does not support the option
                model = convert_sklearn(estimator, **arguments)
    except (MissingConverter, MissingShapeCalculator) as error:
        raise ConversionError(
            f"{name} has neither a model definition nor a converter in skl2onnx: declare a definition in the "
            "entry-point group 'ortlearn.models', or register a converter with "
            "skl2onnx.update_registered_converter."
        ) from error
    except Exception as error:  # skl2onnx raises errors of every kind
        raise ConversionError(f"skl2onnx cannot convert {name}: {error}") from error
    model = inline_functions(model)
    if not model.functions:  # the version converter ignores functions of other opsets
        with suppress(Exception):  # the model is valid without conversion
            return version_converter.convert_version(model, OPSET)
    return model


def append_converted(op: ModelWriter, estimator: Any, x: str | Columns) -> Scores:
    """Append the frozen graph of a transformer; raise an UndefinedModelError for predictors."""
    name = type(estimator).__name__
    if not hasattr(estimator, "transform") or hasattr(estimator, "predict"):
        raise UndefinedModelError(
            f"{name} has no model definition, or none that supports its parameters: declare one in the "
            "entry-point group 'ortlearn.models', or register a converter with "
            f"skl2onnx.update_registered_converter.{limit_address('no-definition')}"
        )
    tensors = list(x.tensors) if isinstance(x, Columns) else [x]
    given = {f"input_{i}": tensor for i, tensor in enumerate(tensors) if tensor is not None}
    types = {key: op.type(tensor) for key, tensor in given.items()} if isinstance(x, Columns) else {}
    width = getattr(estimator, "n_features_in_", None)
    matrix = TensorType(op.elem_type, (None, width))
    model = convert(estimator, {key: types.get(key) or matrix for key in given})
    if model.functions:
        raise ConversionError(f"{name} converts to functions of other opsets, which cannot be inlined.")
    if opset_versions(model).get("", OPSET) > OPSET:
        raise ConversionError(f"{name} converts to a newer opset than {OPSET}, which is not supported.")
    renamed = {old: op.unique(f"{name}_{old}") for old in sorted(graph_names(model.graph) - given.keys())}
    output = model.graph.output[0].name
    known = value_types(model).get(output)
    model = map_names(model, {**renamed, **given})
    op.nodes.extend(model.graph.node)
    op.initializers.extend(model.graph.initializer)
    op.opsets = {**opset_versions(model), **op.opsets}
    result = renamed[output]
    if known is None or known.elem_type != op.elem_type:
        result = op.Cast(result, to=op.elem_type)
    shape = None if known is None else known.shape
    if shape is not None and len(shape) == 2 and isinstance(shape[1], int):
        return transformation(op, result, shape[1])
    return transformation(op, result, int(np.size(estimator.get_feature_names_out())))
