"""Expressions that several penalties share."""

from __future__ import annotations

from ..graphs import GraphBuilder

__all__ = ["absolute_values", "soft_threshold", "squares"]


def absolute_values(op: GraphBuilder, weight: str, factor: float) -> str | None:
    """Write ``factor * |w|``, summed; return None if the factor is zero."""
    return op.Mul(op.ReduceSum(op.Abs(weight), keepdims=0), float(factor)) if factor else None


def squares(op: GraphBuilder, weight: str, factor: float) -> str | None:
    """Write ``factor * w ** 2``, summed; return None if the factor is zero."""
    return op.Mul(op.ReduceSumSquare(weight, keepdims=0), float(factor)) if factor else None


def soft_threshold(op: GraphBuilder, weight: str, threshold: str) -> str:
    """Write ``sign(w) * max(|w| - t, 0)``, the proximal step of ``t * |w|``."""
    return op.Sub(weight, op.Clip(weight, op.Neg(threshold), threshold))
