"""LinearRegressor and LinearClassifier: a product, a sum and a link function."""

import numpy as np

from .common import Fused

#: Transforms of two classes that a single column of scores is enough for.
BINARY_LINKS = {"NONE", "LOGISTIC"}


def linear_regressor(fused: Fused) -> bool:
    """Write a linear regression as a product, a sum and a transform."""
    targets = int(fused.attribute("targets", 1))
    coefficients, intercepts = fused.rows("coefficients", targets), fused.floats("intercepts", 0, targets)
    return fused.give(fused.linked(fused.linear(coefficients, intercepts), targets))


def linear_classifier(fused: Fused) -> bool:
    """Write a linear classifier; two classes with opposite coefficients become one column of scores."""
    link, classes = fused.link(), fused.classes()
    if len(classes) < 2:
        raise ValueError("it has one class")
    intercepts = fused.floats("intercepts", 0, len(classes), 1 if len(classes) == 2 else len(classes))
    rows = intercepts.size or len(classes)
    coefficients = fused.rows("coefficients", rows)
    if np.array_equal(coefficients, [[-1], [1]]) and link in BINARY_LINKS and not intercepts.any():
        return fused.give_two_classes(classes, fused.float_input(), link)  # of scores: nothing to learn
    if rows == 2 and link in BINARY_LINKS and _opposite(coefficients) and _opposite(intercepts):
        coefficients, intercepts, rows = coefficients[1:], intercepts[1:], 1
    if rows == 1 and link not in BINARY_LINKS:
        raise ValueError(f"post_transform is {link!r} for two classes with one row of coefficients")
    raw = fused.linear(coefficients, intercepts)
    if rows == 1:
        return fused.give_two_classes(classes, raw, link)
    fused.give_label(classes, raw)
    return fused.give_scores(raw, link)


def _opposite(values: np.ndarray) -> bool:
    """Return whether the numbers of two classes are opposite, where there are any."""
    return bool(np.array_equal(values[:1], -values[1:]))
