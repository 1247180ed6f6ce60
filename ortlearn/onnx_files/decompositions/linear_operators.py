"""LinearRegressor and LinearClassifier: a product, a sum and a link function."""

from __future__ import annotations

import numpy as np

from .common import Fused
from .links import LINKS, apply_link

__all__ = ["linear_classifier", "linear_regressor"]


def linear_regressor(fused: Fused) -> bool:
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
        fused.write("Add", product, intercept)
    else:
        apply_link(fused.op, link, fused.op.Add(product, intercept), fused.node.output[0])
    return True


#: Transforms of two classes that a single column of scores is enough for.
BINARY_LINKS = {"NONE", "LOGISTIC"}


def linear_classifier(fused: Fused) -> bool:
    """Write a linear classifier as raw scores, probabilities and a label.

    Two classes whose coefficients are opposite become one score column, as scikit-learn has it.
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
        fused.write("Concat", op.Sub(1.0, positive), positive, output=output, axis=1)
    else:
        fused.write("Concat", op.Neg(raw), raw, output=output, axis=1)


def _write_label(fused: Fused, classes: np.ndarray, raw: str, binary: bool) -> None:
    # From raw scores: two sigmoids of large ones are equal.
    label, op = fused.node.output[0], fused.op
    if label:
        scores = op.Concat(op.Neg(raw), raw, axis=1) if binary else raw
        best = op.ArgMax(scores, axis=1, keepdims=0)
        fused.write("Gather", fused.op.constant(classes), best, output=label, axis=0)
