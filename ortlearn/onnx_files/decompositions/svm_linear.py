"""ai.onnx.ml.SVMClassifier without support vectors: one row of coefficients for each class."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .common import Fused
from .links import apply_link
from .svm_kernels import float_array

__all__ = ["write_linear_scores"]


def write_linear_scores(fused: Fused, classes: np.ndarray, link: str) -> bool:
    """Write ``x.a_c + b`` for each class c, the same b for all, and the label.

    Of two classes the second also wins where the larger score is positive (at least 1/2 where no
    coefficient is negative), as onnxruntime decides; otherwise the largest score does.
    """
    coefficients, rho = float_array(fused, "coefficients"), float_array(fused, "rho")
    if not coefficients.size or coefficients.size % len(classes) or not rho.size:
        return False
    op = fused.op
    weight = fused.weight("coef", coefficients.reshape(len(classes), -1).T)
    raw = op.Add(op.MatMul(fused.float_input(), weight), fused.weight("intercept", rho[:1]))
    apply_link(op, link, raw, fused.scores_name())
    if fused.node.output[0]:
        _write_label(fused, classes, raw, bool((coefficients >= 0).all()))
    return True


def _write_label(fused: Fused, classes: np.ndarray, raw: str, all_positive: bool) -> None:
    op = fused.op
    best = op.ArgMax(raw, axis=1, keepdims=0)
    if len(classes) == 2 and not fused.attribute("prob_a", None):
        above = op.GreaterOrEqual(raw, 0.5) if all_positive else op.Greater(raw, 0.0)
        count = op.ReduceSum(op.Cast(above, to=TensorProto.INT64), [1], keepdims=0)
        best = op.Where(op.Greater(count, 0), 1, best)
    fused.write("Gather", op.constant(classes), best, outputs=[fused.node.output[0]], axis=0)
