"""Chains of models, each of which sees what those before it predict: skl2onnx has no converter for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .members import column, member, outputs_of

__all__ = ["convert_classifier", "convert_regressor", "shape_classifier", "shape_regressor"]


def shape_regressor(operator: Any) -> None:
    """Declare the output of a chain of regressors."""
    source = operator.inputs[0].type
    operator.outputs[0].type = type(source)([None, len(operator.raw_operator.estimators_)])


def shape_classifier(operator: Any) -> None:
    """Declare labels and scores of a chain of classifiers, one column each."""
    from skl2onnx.common.data_types import Int64TensorType

    shape = [None, len(operator.raw_operator.estimators_)]
    operator.outputs[0].type = Int64TensorType(shape)
    operator.outputs[1].type = type(operator.inputs[0].type)(shape)


def convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Write every regressor on the features and the predictions of those before it."""
    chain = operator.raw_operator
    predictions: list[Any] = []
    for estimator in chain.estimators_:
        predictions.append(column(_member(estimator, operator, container, predictions), container))
    _ordered(chain, predictions, operator.outputs[0], container).add_to(scope, container)


def convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Write every classifier on the features and the classes (or probabilities) of those before it."""
    from skl2onnx.algebra.onnx_ops import OnnxCast

    chain = operator.raw_operator
    method = getattr(chain, "chain_method_", "predict")
    if method not in ("predict", "predict_proba"):
        raise RuntimeError(f"A chain by {method!r} is not converted: use chain_method='predict'.")
    version, number = container.target_opset, _number_type(operator)
    labels: list[Any] = []
    scores: list[Any] = []
    features: list[Any] = []
    for estimator in chain.estimators_:
        label, score = outputs_of(_member(estimator, operator, container, features))
        labels.append(column(label, container))
        scores.append(_last_column(estimator, score, container))
        passed = labels[-1] if method == "predict" else scores[-1]
        features.append(OnnxCast(passed, to=number, op_version=version))
    _ordered(chain, labels, operator.outputs[0], container, TensorProto.INT64).add_to(scope, container)
    _ordered(chain, scores, operator.outputs[1], container).add_to(scope, container)


def _number_type(operator: Any) -> int:
    double = type(operator.inputs[0].type).__name__ == "DoubleTensorType"
    return TensorProto.DOUBLE if double else TensorProto.FLOAT


def _member(estimator: Any, operator: Any, container: Any, before: list[Any]) -> Any:
    from skl2onnx.algebra.onnx_ops import OnnxConcat

    inputs = operator.inputs[0]
    if before:
        inputs = OnnxConcat(inputs, *before, axis=1, op_version=container.target_opset)
    return member(estimator, inputs, container)


def _last_column(estimator: Any, scores: Any, container: Any) -> Any:
    """Return the column of the second class; decision scores of two classes may be a column already."""
    from skl2onnx.algebra.onnx_ops import OnnxGather

    # Counted from the end, so that it is right for one column, too.
    last = np.array([-1], dtype=np.int64)
    return column(OnnxGather(scores, last, axis=1, op_version=container.target_opset), container)


def _ordered(chain: Any, columns: list[Any], output: Any, container: Any, kind: int | None = None) -> Any:
    """Return the columns in the order of the targets."""
    from skl2onnx.algebra.onnx_ops import OnnxCast, OnnxConcat, OnnxIdentity

    version = container.target_opset
    places = np.argsort(np.asarray(chain.order_))
    joined = OnnxConcat(*[columns[place] for place in places], axis=1, op_version=version)
    if kind is None:
        return OnnxIdentity(joined, op_version=version, output_names=[output])
    return OnnxCast(joined, to=kind, op_version=version, output_names=[output])
