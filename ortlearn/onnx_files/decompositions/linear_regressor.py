"""ai.onnx.ml.LinearRegressor -> MatMul, Add, and its transform."""

from __future__ import annotations

import numpy as np

from .common import Fused
from .links import LINKS, apply_link

__all__ = ["decompose"]


def decompose(fused: Fused) -> bool:
    """Write a linear regression as a product, a sum and a transform."""
    targets = int(fused.attribute("targets", 1))
    link = fused.text("post_transform", "NONE")
    coefficients = np.asarray(fused.attribute("coefficients", []), dtype=np.float32)
    if link not in LINKS or coefficients.size == 0 or coefficients.size % targets:
        return False
    if targets == 1 and link != "PROBIT":
        link = "NONE"  # onnxruntime leaves a single column as it is
    intercepts = np.asarray(fused.attribute("intercepts", [0.0] * targets), dtype=np.float32)
    product = fused.op.MatMul(fused.float_input(), fused.weight("coef", coefficients.reshape(targets, -1).T))
    intercept = fused.weight("intercept", intercepts)
    if link == "NONE":
        fused.write("Add", product, intercept, outputs=[fused.node.output[0]])
    else:
        apply_link(fused.op, link, fused.op.Add(product, intercept), fused.node.output[0])
    return True
