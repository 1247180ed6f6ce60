"""Neural networks: regressors of counts and of several targets, classifiers of several labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from .writing import add_named_weight, add_nodes, start, write_as

__all__ = ["convert_classifier", "convert_regressor", "shape_regressor"]

#: Operators by scikit-learn's name of an activation.
ACTIVATIONS = {
    "exp": "Exp",
    "identity": "Identity",
    "logistic": "Sigmoid",
    "relu": "Relu",
    "softmax": "Softmax",
    "tanh": "Tanh",
}


def shape_regressor(operator: Any) -> None:
    """Declare the output of a network, one column per target."""
    kind = type(operator.outputs[0].type)
    operator.outputs[0].type = kind([None, int(operator.raw_operator.n_outputs_)])


def convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Write a network for regression.

    skl2onnx does not know the exponential that ends a network for counts, and puts several targets
    into one column.
    """
    op, x = start(scope, operator)
    write_as(op, _layers(op, scope, operator.raw_operator, x), operator.outputs[0])
    add_nodes(container, op)


def convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Write a network for classification.

    skl2onnx takes two labels, of which a row may have both, for two classes; all else is left to it.
    """
    network = operator.raw_operator
    if not network._label_binarizer.y_type_.startswith("multilabel"):
        from skl2onnx.operator_converters import multilayer_perceptron

        multilayer_perceptron.convert_sklearn_mlp_classifier(scope, operator, container)
        return
    op, x = start(scope, operator)
    probabilities = _layers(op, scope, network, x)
    above = op.Greater(probabilities, op.constant(np.array(0.5, op.float_dtype)))
    op.node("Cast", above, outputs=[operator.outputs[0].full_name], to=TensorProto.INT64)
    write_as(op, probabilities, operator.outputs[1])
    add_nodes(container, op)


def _layers(op: GraphBuilder, scope: Any, network: Any, x: str) -> str:
    """Write all layers, their weights under the names that skl2onnx gives them."""
    last = len(network.coefs_) - 1
    for layer, (coefficients, intercepts) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
        product = op.MatMul(x, add_named_weight(op, scope, "coefficient", coefficients))
        total = op.Add(product, add_named_weight(op, scope, "intercepts", intercepts[None, :]))
        function = network.out_activation_ if layer == last else network.activation
        x = op.node(ACTIVATIONS[function], total)
    return x
