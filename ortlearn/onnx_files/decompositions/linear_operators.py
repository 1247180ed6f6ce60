"""LinearRegressor and LinearClassifier: a product, a sum and a link function."""

from __future__ import annotations

import numpy as np

from .common import Fused
from .links import LINKS

#: Transforms of two classes that a single column of scores is enough for.
BINARY_LINKS = {"NONE", "LOGISTIC"}


def linear_regressor(fused: Fused) -> bool:
    """Write a linear regression as a product, a sum and a transform."""
    op, targets, link = fused.op, int(fused.attribute("targets", 1)), fused.link()
    coefficients, intercepts = fused.rows("coefficients", targets), fused.floats("intercepts", 0, targets)
    if targets == 1 and link != "PROBIT":
        link = "NONE"  # onnxruntime leaves a single column as it is
    product = op.MatMul(fused.float_input(), fused.weight("coef", coefficients.T))
    intercept = intercepts if intercepts.size else np.zeros(targets, dtype=np.float32)
    return fused.give(LINKS[link](op, op.Add(product, fused.weight("intercept", intercept))))


def linear_classifier(fused: Fused) -> bool:
    """Write a linear classifier as raw scores, probabilities and a label.

    Two classes whose coefficients are opposite become one score column, as scikit-learn has it.
    """
    op, link, classes = fused.op, fused.link(), fused.classes()
    if len(classes) < 2:
        raise ValueError("it has one class")
    intercepts = fused.floats("intercepts", 0, len(classes), 1 if len(classes) == 2 else len(classes))
    rows = intercepts.size or len(classes)
    coefficients = fused.rows("coefficients", rows)
    intercepts = intercepts if intercepts.size else np.zeros(rows, dtype=np.float32)
    if np.array_equal(coefficients, [[-1], [1]]) and link in BINARY_LINKS and not intercepts.any():
        return fused.give_two_classes(classes, fused.float_input(), link)  # of scores: nothing to learn
    if rows == 2 and link in BINARY_LINKS and _opposite(coefficients) and _opposite(intercepts):
        coefficients, intercepts, rows = coefficients[1:], intercepts[1:], 1
    if rows == 1 and link not in BINARY_LINKS:
        raise ValueError(f"post_transform is {link!r} for two classes with one row of coefficients")
    product = op.MatMul(fused.float_input(), fused.weight("coef", coefficients.T))
    raw = op.Add(product, fused.weight("intercept", intercepts))
    if rows == 1:
        return fused.give_two_classes(classes, raw, link)
    fused.give_label(classes, raw)
    return fused.give_scores(LINKS[link](op, raw))


def _opposite(values: np.ndarray) -> bool:
    return bool(np.array_equal(values[0], -values[1]))
