"""ai.onnx.ml.Normalizer -> the norm of each row, and a division by it."""

from __future__ import annotations

from .common import Fused
from .norms import divide_by_norm

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write a normalizer; MAX divides by the largest value, not by the largest absolute value.

    A row whose norm is zero stays as it is.
    """
    norm = fused.text("norm", "MAX")
    if norm not in ("MAX", "L1", "L2"):
        return False
    fused.write(
        "Div", *divide_by_norm(fused.op, fused.float_input(), norm, -1), outputs=[fused.node.output[0]]
    )
    fused.note_output(fused.op.shape(fused.node.input[0]))
    return True
