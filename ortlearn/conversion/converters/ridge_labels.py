"""Ridge classifiers of several labels, of which skl2onnx takes two for two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .writing import add_named_weight, add_nodes, start, write_as

__all__ = ["convert"]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write RidgeClassifier or RidgeClassifierCV; one class per row is left to skl2onnx."""
    ridge = operator.raw_operator
    if not ridge._label_binarizer.y_type_.startswith("multilabel"):
        from skl2onnx.operator_converters import linear_classifier

        linear_classifier.convert_sklearn_linear_classifier(scope, operator, container)
        return
    op, x = start(scope, operator)
    product = op.MatMul(x, add_named_weight(op, scope, "coef", ridge.coef_.T))
    intercepts = np.broadcast_to(ridge.intercept_, len(ridge.coef_))
    scores = op.Add(product, add_named_weight(op, scope, "intercept", intercepts))
    above = op.Greater(scores, op.constant(np.array(0.0, op.float_dtype)))
    op.node("Cast", above, outputs=[operator.outputs[0].full_name], to=TensorProto.INT64)
    write_as(op, scores, operator.outputs[1])
    add_nodes(container, op)
