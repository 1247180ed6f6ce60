"""Expressions that several losses share, of operators that both gradient backends know."""

from __future__ import annotations

from ..graphs import GraphBuilder

__all__ = ["margin", "positive_part", "softplus"]


def positive_part(op: GraphBuilder, values: str) -> str:
    """Write ``max(values, 0)``.

    It is written ``(v + |v|) / 2``, whose gradient is 1/2 at zero: a model that starts from zero
    scores leaves a kink there.
    """
    return op.Mul(op.Add(values, op.Abs(values)), 0.5)


def softplus(op: GraphBuilder, values: str) -> str:
    """Write ``log(1 + exp(values))`` so that nothing overflows: ``max(v, 0) + log(1 + exp(-|v|))``."""
    magnitude = op.Abs(values)
    positive = op.Mul(op.Add(values, magnitude), 0.5)
    return op.Add(positive, op.Log(op.Add(op.Exp(op.Neg(magnitude)), 1.0)))


def margin(op: GraphBuilder, expected: str, predicted: str) -> str:
    """Write ``t * z`` of scores z and labels in {0, 1}, as t in {-1, 1}."""
    return op.Mul(op.Sub(op.Mul(expected, 2.0), 1.0), predicted)
