"""Functions of numpy that are a few ONNX operators, element by element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from ..graphs import GraphBuilder


def _arcsinh(op: GraphBuilder, x: str) -> str:
    # arcsinh |x| = log(|x| + sqrt(x^2 + 1)), and it is odd
    size = op.Abs(x)
    return op.Mul(op.Sign(x), op.Log(op.Add(size, op.Sqrt(op.Add(op.Mul(size, size), 1.0)))))


def _arctanh(op: GraphBuilder, x: str) -> str:
    return op.Mul(op.Log(op.Div(op.Add(x, 1.0), op.Sub(1.0, x))), 0.5)


def _sinh(op: GraphBuilder, x: str) -> str:
    return op.Mul(op.Sub(op.Exp(x), op.Exp(op.Neg(x))), 0.5)


#: What a function is in ONNX; onnxruntime has Cos and Asinh in float32 only.
FUNCTIONS: dict[Callable | None, Callable[[GraphBuilder, str], str]] = {
    None: lambda op, x: x,
    np.absolute: lambda op, x: op.Abs(x),
    np.arcsinh: _arcsinh,
    np.arctanh: _arctanh,
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
    np.sinh: _sinh,
    np.sqrt: lambda op, x: op.Sqrt(x),
    np.square: lambda op, x: op.Mul(x, x),
    np.tanh: lambda op, x: op.Tanh(x),
    special.expit: lambda op, x: op.Sigmoid(x),
}


def is_known_function(function: Callable | None) -> bool:
    """Return whether a function of an array has a form in ONNX; None is the identity."""
    try:
        return function in FUNCTIONS
    except TypeError:  # a function that has no hash
        return False
