"""FunctionTransformer with a function of numpy that is one or two ONNX operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer

from ...graphs import GraphBuilder
from .writing import add_nodes, start, write_as

__all__ = ["Elementwise", "as_elementwise", "convert", "output_shape"]


def _arcsinh(op: GraphBuilder, x: str) -> str:
    # arcsinh |x| = log(|x| + sqrt(x^2 + 1)), and it is odd
    size = op.Abs(x)
    return op.Mul(op.Sign(x), op.Log(op.Add(size, op.Sqrt(op.Add(op.Mul(size, size), 1.0)))))


#: What a function of numpy is in ONNX, element by element: onnxruntime has Cos and Asinh in float32 only.
FUNCTIONS: dict[Callable, Callable[[GraphBuilder, str], str]] = {
    np.absolute: lambda op, x: op.Abs(x),
    np.arcsinh: lambda op, x: _arcsinh(op, x),
    np.cos: lambda op, x: op.Sin(op.Add(x, float(np.pi / 2))),
    np.exp: lambda op, x: op.Exp(x),
    np.expm1: lambda op, x: op.Sub(op.Exp(x), 1.0),
    np.log: lambda op, x: op.Log(x),
    np.log10: lambda op, x: op.Div(op.Log(x), float(np.log(10.0))),
    np.log1p: lambda op, x: op.Log(op.Add(x, 1.0)),
    np.log2: lambda op, x: op.Div(op.Log(x), float(np.log(2.0))),
    np.negative: lambda op, x: op.Neg(x),
    np.reciprocal: lambda op, x: op.Reciprocal(x),
    np.sign: lambda op, x: op.Sign(x),
    np.sin: lambda op, x: op.Sin(x),
    np.sqrt: lambda op, x: op.Sqrt(x),
    np.square: lambda op, x: op.Mul(x, x),
    np.tanh: lambda op, x: op.Tanh(x),
}


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
    try:
        known = transformer.func in FUNCTIONS
    except TypeError:  # a function that has no hash
        return transformer
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
