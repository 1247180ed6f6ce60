"""Norms along an axis that are never zero, nor is the slope of their roots infinite."""

from __future__ import annotations

from ...graphs import GraphBuilder

__all__ = ["divide_by_norm"]


def divide_by_norm(op: GraphBuilder, x: str, norm: str, axis: int) -> tuple[str, str]:
    """Return the operands of the division that normalizes a tensor.

    Parameters
    ----------
    op : GraphBuilder
        Where the nodes go; it knows the type of ``x``.
    x : str
        Tensor.
    norm : {"MAX", "L1", "L2"}
        Largest value, sum of absolute values, or Euclidean norm.
    axis : int
        Axis of the norm.

    Returns
    -------
    dividend, divisor : str
        ``x``, and its norm, one where that is zero.
    """
    dtype = op.dtype(x)
    if norm == "MAX":
        size = op.ReduceMax(x, axes=[axis]) if op.opset < 18 else op.ReduceMax(x, [axis])
    else:
        size = op.ReduceSum(op.Abs(x) if norm == "L1" else op.Mul(x, x), [axis])
    one = op.constant(1.0, dtype)
    safe = op.Where(op.Equal(size, op.constant(0.0, dtype)), one, size)
    return x, op.Sqrt(safe) if norm == "L2" else safe
