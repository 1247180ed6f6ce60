"""LpNormalization -> the norm along an axis, and a division by it."""

from __future__ import annotations

from .common import Fused
from .norms import divide_by_norm

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write a normalization by the sum of absolute values, or by the Euclidean norm.

    What has norm zero stays as it is.
    """
    norm = {1: "L1", 2: "L2"}.get(fused.attribute("p", 2))
    if norm is None:
        return False
    operands = divide_by_norm(fused.op, fused.node.input[0], norm, fused.attribute("axis", -1))
    fused.write("Div", *operands, outputs=[fused.node.output[0]])
    return True
