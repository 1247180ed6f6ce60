"""FunctionTransformer with a function of numpy that is one or two ONNX operators."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer

from ...models.functions import FUNCTIONS, is_known_function
from .writing import add_nodes, start, write_as

__all__ = ["Elementwise", "as_elementwise", "convert", "output_shape"]


class Elementwise(BaseEstimator):
    """What stands for a FunctionTransformer while skl2onnx writes a graph: it refuses that one by its type.

    Parameters
    ----------
    function : callable
        One of ``FUNCTIONS``.
    """

    def __init__(self, function):
        self.function = function

    def fit(self, X, y=None):
        """Return the object: there is nothing to learn."""
        return self

    def transform(self, X):
        """Apply the function."""
        return self.function(X)


def as_elementwise(transformer: FunctionTransformer) -> Any:
    """Return what stands for a FunctionTransformer, itself where its function has no form in ONNX."""
    known = transformer.func is not None and is_known_function(transformer.func)
    return Elementwise(transformer.func) if known and not transformer.kw_args else transformer


def output_shape(operator: Any) -> None:
    """Tell skl2onnx that the shape and the type stay."""
    known = operator.inputs[0].type
    floats = type(known).__name__ in ("DoubleTensorType", "FloatTensorType")
    if not floats or len(operator.inputs) > 1:
        raise NotImplementedError("a function of columns of several kinds")
    operator.outputs[0].type = type(known)(list(known.shape))


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the function."""
    op, x = start(scope, operator)
    write_as(op, FUNCTIONS[operator.raw_operator.function](op, x), operator.outputs[0])
    add_nodes(container, op)
