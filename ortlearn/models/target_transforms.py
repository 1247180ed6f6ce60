"""Inverse transformations of targets as nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from ..exceptions import ConversionError
from ..graphs import GraphBuilder

__all__ = ["write_inverse"]


# By functions that onnxruntime has in float64, too.
def _sinh(op: GraphBuilder, x: str) -> str:
    return op.Mul(op.Sub(op.Exp(x), op.Exp(op.Neg(x))), _like(op, x, 0.5))


def _arcsinh(op: GraphBuilder, x: str) -> str:
    root = op.Sqrt(op.Add(op.Mul(x, x), _like(op, x, 1.0)))
    return op.Mul(op.Sign(x), op.Log(op.Add(op.Abs(x), root)))


def _arctanh(op: GraphBuilder, x: str) -> str:
    one = _like(op, x, 1.0)
    return op.Mul(op.Log(op.Div(op.Add(one, x), op.Sub(one, x))), _like(op, x, 0.5))


#: Inverse functions that have an ONNX expression.
FUNCTIONS: dict[Any, Callable[[GraphBuilder, str], str]] = {
    np.exp: lambda op, x: op.Exp(x),
    np.expm1: lambda op, x: op.Sub(op.Exp(x), _like(op, x, 1.0)),
    np.log: lambda op, x: op.Log(x),
    np.log1p: lambda op, x: op.Log(op.Add(x, _like(op, x, 1.0))),
    np.sqrt: lambda op, x: op.Sqrt(x),
    np.square: lambda op, x: op.Mul(x, x),
    np.negative: lambda op, x: op.Neg(x),
    np.reciprocal: lambda op, x: op.Reciprocal(x),
    np.sinh: lambda op, x: _sinh(op, x),
    np.arcsinh: lambda op, x: _arcsinh(op, x),
    np.tanh: lambda op, x: op.Tanh(x),
    np.arctanh: lambda op, x: _arctanh(op, x),
    special.expit: lambda op, x: op.Sigmoid(x),
    None: lambda op, x: x,
}


def write_inverse(op: GraphBuilder, transformer: Any, name: str) -> str:
    """Append what turns transformed targets into the targets.

    Parameters
    ----------
    op : GraphBuilder
        Where the nodes go.
    transformer : transformer
        Fitted transformer of the targets.
    name : str
        Predictions of the transformed targets, of shape (n, k).

    Returns
    -------
    str
        Predictions of the targets.

    Raises
    ------
    ConversionError
        If the inverse is not known as ONNX.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from ortlearn.preprocessing.target_transforms import write_inverse
    >>> from ortlearn.graphs import GraphBuilder
    >>> op = GraphBuilder()
    >>> name = write_inverse(op, FunctionTransformer(np.log1p, inverse_func=np.expm1), "y")
    >>> [node.op_type for node in op.nodes]
    ['Exp', 'Sub']
    """
    if isinstance(transformer, Pipeline):
        for _, step in reversed(transformer.steps):
            name = write_inverse(op, step, name)
        return name
    if transformer in (None, "passthrough"):
        return name
    if isinstance(transformer, FunctionTransformer) and transformer.inverse_func in FUNCTIONS:
        return FUNCTIONS[transformer.inverse_func](op, name)
    if type(transformer) not in SCALERS:
        raise ConversionError(
            f"The inverse of the target transformer {transformer!r} is not known as ONNX: use a scaler, or "
            f"one of the functions {sorted(f.__name__ for f in FUNCTIONS if f is not None)}."
        )
    scale, offset = SCALERS[type(transformer)](transformer)
    dtype = np.dtype(op.dtype(name) or op.float_dtype)
    if np.abs(np.concatenate([np.ravel(scale), np.ravel(offset)])).max() > np.finfo(dtype).max:
        raise ConversionError(
            f"{type(transformer).__name__} of y has values too large for {dtype}: give y in other units, or "
            "dtype='float64'."
        )
    name = op.Mul(name, _like(op, name, scale))
    return op.Add(name, _like(op, name, offset))


def _like(op: GraphBuilder, name: str, value: Any) -> str:
    return op.constant(np.asarray(value, dtype=op.dtype(name) or op.float_dtype))


# What a scaler multiplies by and adds to get back: y = z * scale + offset.
def _standard(scaler: StandardScaler) -> tuple[Any, Any]:
    return (
        1.0 if scaler.scale_ is None else scaler.scale_,
        scaler.mean_ if scaler.with_mean else 0.0,
    )


def _robust(scaler: RobustScaler) -> tuple[Any, Any]:
    return (
        1.0 if scaler.scale_ is None else scaler.scale_,
        0.0 if scaler.center_ is None else scaler.center_,
    )


SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: _standard,
    RobustScaler: _robust,
    MaxAbsScaler: lambda scaler: (scaler.scale_, 0.0),
    MinMaxScaler: lambda scaler: (1.0 / scaler.scale_, -scaler.min_ / scaler.scale_),
}
