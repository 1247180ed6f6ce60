"""ai.onnx.ml.LinearRegressor -> MatMul, Add."""

from __future__ import annotations

import numpy as np

from .common import Fused

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write a linear regression as a product and a sum; False where it has a transform."""
    if fused.text("post_transform", "NONE") != "NONE":
        return False
    targets = int(fused.attribute("targets", 1))
    coefficients = np.asarray(fused.attribute("coefficients", []), dtype=np.float32)
    if coefficients.size == 0 or coefficients.size % targets:
        return False
    intercepts = np.asarray(fused.attribute("intercepts", [0.0] * targets), dtype=np.float32)
    product = fused.op.MatMul(fused.float_input(), fused.weight("coef", coefficients.reshape(targets, -1).T))
    fused.write("Add", product, fused.weight("intercept", intercepts), outputs=[fused.node.output[0]])
    return True
