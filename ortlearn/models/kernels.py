"""Kernels between samples and the samples of a fit: products, polynomials, normal densities, sigmoids.

Chang and Lin, "LIBSVM: a library for support vector machines", ACM TIST 2011, section 3.
"""

from typing import Any

import numpy as np

from ..graphs import GraphBuilder

#: Largest power written as a chain of products, whose gradient is exact at zero too.
MAX_CHAIN = 16


def products(op: GraphBuilder, x: str, rows: str) -> str:
    """Return ``x y'`` of matrices of shape (n, n_features) and (m, n_features)."""
    # not MatMul of a Transpose: onnxruntime fuses them into an operator that has no float64 kernel
    return op.Gemm(x, rows, transB=1)


def polynomial(op: GraphBuilder, x: str, rows: str, gamma: Any, coef0: Any, degree: float) -> str:
    """Return ``(gamma x y' + coef0) ** degree``; parameters as for :func:`sigmoid`."""
    base = op.Add(op.Mul(products(op, x, rows), gamma), coef0)
    if not float(degree).is_integer() or not 1 <= degree <= MAX_CHAIN:
        return op.Pow(base, float(degree))
    return _power(op, base, int(degree))


def _power(op: GraphBuilder, base: str, degree: int) -> str:
    if degree == 1:
        return base
    half = _power(op, base, degree // 2)
    square = op.Mul(half, half)
    return op.Mul(square, base) if degree % 2 else square


def sigmoid(op: GraphBuilder, x: str, rows: str, gamma: Any, coef0: Any) -> str:
    """Return ``tanh(gamma x y' + coef0)``; ``gamma`` and ``coef0`` are tensors or numbers."""
    return op.Tanh(op.Add(op.Mul(products(op, x, rows), gamma), coef0))


def radial(op: GraphBuilder, x: str, rows: str, gamma: str, centre: np.ndarray | None = None) -> str:
    """Return ``exp(-gamma |x - y|^2)``, by a product of matrices; centre as of :func:`remote_centre`."""
    # -g |x - y|^2 = 2 g x.y - g |y|^2 - g |x|^2. What depends on the samples alone is computed once.
    if centre is not None:
        x, rows = op.Sub(x, centre), op.Sub(rows, centre)
    scaled = products(op, op.Mul(x, op.Mul(gamma, 2.0)), rows)
    sizes = op.Mul(op.ReduceSum(op.Mul(rows, rows), [1], keepdims=0), gamma)
    own_sizes = op.Mul(op.ReduceSum(op.Mul(x, x), [1], keepdims=1), gamma)
    return op.Exp(op.Sub(op.Sub(scaled, sizes), own_sizes))


def unit_rows(op: GraphBuilder, x: str, norm: str = "l2") -> str:
    """Return rows divided by their norms, ``"l1"``, ``"l2"`` or ``"max"``; rows of zeros as they are."""
    if norm == "l2":
        squares = op.ReduceSumSquare(x, [1], keepdims=1)
        return op.Div(x, op.Sqrt(op.Where(op.Equal(squares, 0.0), 1.0, squares)))
    size = op.node("ReduceSum" if norm == "l1" else "ReduceMax", op.Abs(x), [1], keepdims=1)
    return op.Div(x, op.Where(op.Equal(size, 0.0), 1.0, size))


def remote_centre(rows: np.ndarray) -> np.ndarray | None:
    """Return the mean of rows farther from zero than apart, whose squares lose digits that differences have.

    None where they are near zero.
    """
    centre = rows.mean(axis=0)
    is_far = np.square(centre).sum() > np.square(rows - centre).sum(axis=1).mean()
    return centre if is_far else None
