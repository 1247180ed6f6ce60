"""ai.onnx.ml.Scaler -> Sub, Mul."""

from __future__ import annotations

import numpy as np

from .common import Fused

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write a scaler as ``(x - offset) * scale``."""
    offset = np.asarray(fused.attribute("offset", [0.0]), dtype=np.float32)
    scale = np.asarray(fused.attribute("scale", [1.0]), dtype=np.float32)
    centred = fused.op.Sub(fused.float_input(), fused.weight("offset", offset))
    fused.write("Mul", centred, fused.weight("scale", scale), outputs=[fused.node.output[0]])
    fused.note_output(fused.op.shape(fused.node.input[0]))
    return True
