"""Pairwise distances between the rows of two matrices, with a gradient at equal rows."""

import math
from typing import Any

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder

#: Largest size of a matrix of which differences are computed; squared distances to larger ones are computed
#: as |a|^2 + |b|^2 - 2 a b', which needs no more memory than the result.
EXACT = 2**13
MANY = 2**16  # largest size for other metrics: a Scan over a larger matrix is not rewritten


def pairwise_distances(
    op: GraphBuilder, a: str, b: str, metric: str, power: Any = None, smooth: bool = False
) -> str:
    """Return the pairwise distances between the rows of two matrices, of shape (n, m).

    Those of float32 that a ``smooth`` function reads are computed by a product in float64, which is faster:
    squared distances of equal rows are then zero up to rounding.
    """
    # "minkowski": sum of |a - b| ** power, without the root; "chi2": sum of (a - b) ** 2 / (a + b)
    euclidean = metric in ("sqeuclidean", "euclidean")
    if euclidean and _size(op, b) > (0 if smooth and op.dtype(b) == np.float32 else EXACT):
        squares = _squares_by_product(op, a, b)
        return guarded_sqrt(op, squares, op.dtype(b)) if metric == "euclidean" else squares
    one, other = op.Unsqueeze(a, [1]), op.Unsqueeze(b, [0])
    differences = op.Sub(one, other)
    if metric == "chi2":
        sums = op.Add(one, other)
        shares = op.Div(op.Mul(differences, differences), op.Where(op.Equal(sums, 0.0), 1.0, sums))
        return op.ReduceSum(shares, [2], keepdims=0)
    if euclidean:
        squares = reduced(op, "ReduceSumSquare", differences, 2, keepdims=0)
        return guarded_sqrt(op, squares, op.dtype(b)) if metric == "euclidean" else squares
    size = op.Abs(differences)
    if metric == "minkowski":
        return op.ReduceSum(op.Pow(size, power), [2], keepdims=0)
    if metric == "manhattan":
        return op.ReduceSum(size, [2], keepdims=0)
    return reduced(op, "ReduceMax", size, 2, keepdims=0)


def _size(op: GraphBuilder, name: str) -> int:
    """Return the number of elements of a matrix, 0 if unknown."""
    shape = op.shape(name) or ()
    sizes = [dim for dim in shape if isinstance(dim, int)]
    return math.prod(sizes) if len(sizes) == len(shape) else 0


def _squares_by_product(op: GraphBuilder, a: str, b: str) -> str:
    # in float64, as the difference of nearly equal values loses digits
    is_float32 = op.dtype(b) == np.float32
    if is_float32:
        a, b = (op.Cast(name, to=TensorProto.DOUBLE) for name in (a, b))
    # not MatMul of a Transpose: onnxruntime fuses them into an operator that has no float64 kernel
    products = op.Gemm(a, b, transB=1, alpha=2.0)
    one, other = (reduced(op, "ReduceSumSquare", rows, 1) for rows in (a, b))
    lengths = op.Add(one, op.Transpose(other, perm=[1, 0]))
    squares = op.Max(op.Sub(lengths, products), op.constant(np.zeros(())))
    return op.Cast(squares, to=TensorProto.FLOAT) if is_float32 else squares


def reduced(op: GraphBuilder, op_type: str, name: str, axis: int, keepdims: int = 1) -> str:
    """Return a tensor reduced along an axis, with axes as the opset requires them."""
    if op.opset < 18:
        return op.node(op_type, name, axes=[axis], keepdims=keepdims)
    return op.node(op_type, name, [axis], keepdims=keepdims)


def guarded_sqrt(op: GraphBuilder, squares: str, dtype: Any, **outputs: Any) -> str:
    """Return the square root of nonnegative values, with a gradient of zero at zero."""
    tiny = np.finfo(dtype or np.float32).tiny  # its root, 1e-19 in float32, replaces zero
    return op.Sqrt(op.Max(squares, op.constant(tiny, dtype)), **outputs)
