"""Multi-layer perceptrons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .base import ModelDefinition
from .forms import Reshaped
from .scores import Scores, binary_classes, class_scores, indicator, regression
from .writer import ModelWriter

__all__ = ["PerceptronDefinition"]

#: Form of the intercepts of a layer.
ROW = Reshaped((1, -1))
ACTIVATIONS: dict[str, Callable[[ModelWriter, str], str]] = {
    "identity": lambda op, x: x,
    "logistic": lambda op, x: op.Sigmoid(x),
    "relu": lambda op, x: op.Relu(x),
    "tanh": lambda op, x: op.Tanh(x),
}


class PerceptronDefinition(ModelDefinition):
    """MLPRegressor and MLPClassifier."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the layers."""
        for layer in range(len(model.coefs_)):
            if layer:
                x = ACTIVATIONS[model.activation](op, x)
            coefs = op.parameter(model, "coefs_", index=layer, role="weight", drawn=True)
            x = op.Add(
                op.MatMul(x, coefs),
                op.parameter(model, "intercepts_", index=layer, form=ROW, role="intercept", drawn=True),
            )
        if not hasattr(model, "classes_"):
            return regression(
                op, x, model.n_outputs_, "log" if model.out_activation_ == "exp" else "identity"
            )
        if model._label_binarizer.y_type_.startswith("multilabel"):
            return indicator(op, x, model.classes_, op.Sigmoid(x))
        if model.out_activation_ == "logistic":
            return binary_classes(op, x, model.classes_)
        return class_scores(op, x, model.classes_)
