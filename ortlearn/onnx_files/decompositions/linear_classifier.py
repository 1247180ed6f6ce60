"""ai.onnx.ml.LinearClassifier -> MatMul, Add, and its link function."""

from __future__ import annotations

import numpy as np

from .common import Fused
from .links import LINKS, apply_link

__all__ = ["decompose"]

#: Transforms of two classes that a single column of scores is enough for.
BINARY_LINKS = {"NONE", "LOGISTIC"}


def decompose(fused: Fused) -> bool:
    """Write a linear classifier as raw scores, probabilities and a label.

    Two classes whose rows are opposite become one score column, as scikit-learn has it.
    """
    link = fused.text("post_transform", "NONE")
    classes = fused.classes()
    coefficients = np.asarray(fused.attribute("coefficients", []), dtype=np.float32)
    intercepts = np.asarray(fused.attribute("intercepts", []), dtype=np.float32)
    if link not in LINKS or len(classes) < 2 or coefficients.size == 0:
        return False
    rows = max(intercepts.size, 1) if intercepts.size else len(classes)
    coefficients = coefficients.reshape(rows, -1)
    if intercepts.size == 0:
        intercepts = np.zeros(rows, dtype=np.float32)
    if rows == 2 and link in BINARY_LINKS and _opposite(coefficients) and _opposite(intercepts):
        coefficients, intercepts, rows = coefficients[1:], intercepts[1:], 1
    if (
        rows not in (1, len(classes))
        or (rows == 1 and len(classes) != 2)
        or (rows == 1 and link not in BINARY_LINKS)
    ):
        return False
    product = fused.op.MatMul(fused.float_input(), fused.weight("coef", coefficients.T))
    raw = fused.op.Add(product, fused.weight("intercept", intercepts))
    _write_scores(fused, raw, link, binary=rows == 1)
    _write_label(fused, classes, raw, binary=rows == 1)
    return True


def _opposite(values: np.ndarray) -> bool:
    return bool(np.array_equal(values[0], -values[1]))


def _write_scores(fused: Fused, raw: str, link: str, binary: bool) -> None:
    op, output = fused.op, fused.scores_name()
    if not binary:
        apply_link(op, link, raw, output)
    elif link == "LOGISTIC":
        positive = op.Sigmoid(raw)
        fused.write("Concat", op.Sub(1.0, positive), positive, outputs=[output], axis=1)
    else:
        fused.write("Concat", op.Neg(raw), raw, outputs=[output], axis=1)


def _write_label(fused: Fused, classes: np.ndarray, raw: str, binary: bool) -> None:
    # From raw scores: two sigmoids of large ones are equal.
    label, op = fused.node.output[0], fused.op
    if label:
        scores = op.Concat(op.Neg(raw), raw, axis=1) if binary else raw
        best = op.ArgMax(scores, axis=1, keepdims=0)
        fused.write("Gather", fused.op.constant(classes), best, outputs=[label], axis=0)
