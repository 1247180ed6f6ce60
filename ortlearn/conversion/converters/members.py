"""Members of estimators, written on the features they see."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["column", "member", "outputs_of"]


def member(estimator: Any, features: Any, container: Any) -> Any:
    """Return a fitted member as skl2onnx writes it: a step of a pipeline on what the one before gives."""
    from skl2onnx.algebra.onnx_operator import OnnxSubEstimator
    from sklearn.base import is_classifier
    from sklearn.pipeline import Pipeline
    from sklearn.svm import LinearSVC

    version = container.target_opset
    while isinstance(estimator, Pipeline):  # skl2onnx loses the labels of a whole one
        *before, (_, estimator) = [step for step in estimator.steps if step[1] not in (None, "passthrough")]
        for _, step in before:
            features = member(step, features, container)
    # Decisions of LinearSVC are never dictionaries, and it has no such option.
    options = {"zipmap": False} if is_classifier(estimator) and not isinstance(estimator, LinearSVC) else None
    return OnnxSubEstimator(estimator, features, op_version=version, options=options)


def outputs_of(classifier: Any) -> tuple[Any, Any]:
    """Return labels and scores of a member."""
    return classifier[0], classifier[1]


def column(values: Any, container: Any) -> Any:
    """Return values as a matrix of one column."""
    from skl2onnx.algebra.onnx_ops import OnnxReshapeApi13

    return OnnxReshapeApi13(values, np.array([-1, 1], dtype=np.int64), op_version=container.target_opset)
