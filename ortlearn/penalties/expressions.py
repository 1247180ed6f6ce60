"""Expressions that several penalties share."""

from __future__ import annotations

from ..graphs import GraphBuilder

__all__ = ["absolute_values", "as_operand", "soft_threshold", "squares"]


def as_operand(factor: float | str) -> float | str:
    """Return a factor as an operand: the name of a scalar, or a float."""
    return factor if isinstance(factor, str) else float(factor)


def absolute_values(op: GraphBuilder, weight: str, factor: float | str) -> str | None:
    """Write ``factor * |w|``, summed; return None if the factor is zero."""
    return op.Mul(op.ReduceSum(op.Abs(weight), keepdims=0), as_operand(factor)) if factor else None


def squares(op: GraphBuilder, weight: str, factor: float | str) -> str | None:
    """Write ``factor * w ** 2``, summed; return None if the factor is zero."""
    return op.Mul(op.ReduceSumSquare(weight, keepdims=0), as_operand(factor)) if factor else None


def soft_threshold(op: GraphBuilder, weight: str, threshold: str) -> str:
    """Write ``sign(w) * max(|w| - t, 0)``, the proximal step of ``t * |w|``."""
    return op.Sub(weight, op.Clip(weight, op.Neg(threshold), threshold))
