"""Kernels of support vector machines as plain operators, the support vectors as a weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from .common import Fused

__all__ = ["KERNELS", "as_double", "as_float", "float_array", "kernel_matrix"]

#: Largest power written as a chain of products, whose gradient is exact at zero too.
MAX_CHAIN = 16


def kernel_matrix(fused: Fused, vectors: np.ndarray) -> str:
    """Return the kernel of every row with every support vector.

    With g, c and d the numbers of ``kernel_params`` (gamma, coef0, degree), x a row and s a support
    vector, it is ``x.s`` (LINEAR), ``(g x.s + c)^d`` (POLY), ``tanh(g x.s + c)`` (SIGMOID) or
    ``exp(-g |x - s|^2)`` (RBF), as in Chang and Lin, "LIBSVM: a library for support vector
    machines", ACM TIST 2011, section 3.

    Parameters
    ----------
    fused : Fused
        Node with the attributes ``kernel_type``, one of :data:`KERNELS`, and ``kernel_params``.
    vectors : ndarray of shape (n_vectors, n_features)
        Support vectors, float32.

    Returns
    -------
    str
        Tensor of shape (rows, n_vectors), float32. ``support_vectors``, and ``gamma`` and ``coef0``
        where the kernel has them, are initializers of their own.
    """
    kind = fused.text("kernel_type", "LINEAR")
    params = list(fused.attribute("kernel_params", [])) or [0.0, 0.0, 0.0]
    return KERNELS[kind](fused, vectors, params)


def as_double(op: GraphBuilder, name: str) -> str:
    """Return a tensor as float64: sums over support vectors are much smaller than their terms.

    Never put a Transpose next to it: onnxruntime 1.19 fuses both into an operator it has not for float64.
    """
    return op.Cast(name, to=TensorProto.DOUBLE)


def as_float(op: GraphBuilder, name: str) -> str:
    """Return a tensor as float32."""
    return op.Cast(name, to=TensorProto.FLOAT)


def float_array(fused: Fused, name: str) -> np.ndarray:
    """Return an attribute of floats as a float32 vector, empty where there is none."""
    return np.asarray(fused.attribute(name, []), dtype=np.float32).ravel()


def _linear(fused: Fused, vectors: np.ndarray, params: list[float]) -> str:
    return _products(fused.op, fused.float_input(), fused.weight("support_vectors", vectors))


def _products(op: GraphBuilder, rows: str, vectors: str) -> str:
    return op.MatMul(rows, op.Transpose(vectors, perm=[1, 0]))


def _scaled_products(fused: Fused, vectors: np.ndarray, params: list[float]) -> str:
    """Return g x.s + c."""
    op, weights = fused.op, fused.weight("support_vectors", vectors)
    products = op.Mul(_products(op, fused.float_input(), weights), _number(fused, "gamma", params[0]))
    return op.Add(products, _number(fused, "coef0", params[1]))


def _number(fused: Fused, stem: str, value: float) -> str:
    return fused.weight(stem, np.array([value], dtype=np.float32))


def _polynomial(fused: Fused, vectors: np.ndarray, params: list[float]) -> str:
    base, degree = _scaled_products(fused, vectors, params), float(params[2])
    if not degree.is_integer() or not 1 <= degree <= MAX_CHAIN:
        return fused.op.Pow(base, degree)
    return _power(fused.op, base, int(degree))


def _power(op: GraphBuilder, base: str, degree: int) -> str:
    if degree == 1:
        return base
    half = _power(op, base, degree // 2)
    square = op.Mul(half, half)
    return op.Mul(square, base) if degree % 2 else square


def _sigmoid(fused: Fused, vectors: np.ndarray, params: list[float]) -> str:
    return fused.op.Tanh(_scaled_products(fused, vectors, params))


def _rbf(fused: Fused, vectors: np.ndarray, params: list[float]) -> str:
    # -g |x - s|^2 = 2 g x.s - g |s|^2 - g |x|^2. What depends on the rows alone is computed once.
    op, rows = fused.op, fused.float_input()
    weights, gamma = fused.weight("support_vectors", vectors), _number(fused, "gamma", params[0])
    centre = vectors.mean(axis=0)
    if _is_far(vectors, centre):
        rows, weights = op.Sub(rows, centre), op.Sub(weights, centre)
    products = _products(op, op.Mul(rows, op.Mul(gamma, 2.0)), weights)
    sizes = op.Mul(op.ReduceSum(op.Mul(weights, weights), [1], keepdims=0), gamma)
    row_sizes = op.Mul(op.ReduceSum(op.Mul(rows, rows), [1], keepdims=1), gamma)
    return op.Exp(op.Sub(op.Sub(products, sizes), row_sizes))


def _is_far(vectors: np.ndarray, centre: np.ndarray) -> bool:
    """Tell whether squares lose digits that differences have: the vectors are farther from 0 than apart."""
    return bool(np.square(centre).sum() > np.square(vectors - centre).sum(axis=1).mean())


#: Kernels by name.
KERNELS: dict[str, Callable[[Fused, np.ndarray, list[float]], str]] = {
    "LINEAR": _linear,
    "POLY": _polynomial,
    "RBF": _rbf,
    "SIGMOID": _sigmoid,
}
