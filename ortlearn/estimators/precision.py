"""Warnings where float32 has too few digits for X or y."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..conversion.inputs.digits import LOST, rounded_columns, rounding, title_of_columns
from ..exceptions import PrecisionWarning, warn_user
from .problem import Problem

__all__ = ["warn_of_rounding"]


def warn_of_rounding(problem: Problem, X: Any, y: Any) -> bool:
    """Warn where float32 rounds away digits of X or y that matter, and return whether predictions suffer.

    They do not where steps in front are computed in float64. X is as the graph takes it, before it has the
    graph's type.
    """
    if problem.dtype != np.float32:
        return False
    schema = problem.trainable.schema
    lost = rounded_columns(X, schema.narrowed())
    wide, labels = schema.float_dtype == np.float64, False
    if lost and wide:
        if problem.source is not None:
            inputs = [item.name for item in schema.inputs if item.dtype == np.float64]
            warn_user(_message_of_wide_inputs(title_of_columns(lost), inputs), PrecisionWarning)
    elif lost:
        by_type = "" if problem.source is None else ", or set dtype='float64'"
        warn_user(
            f"float32, which the ONNX model takes, rounds {title_of_columns(lost)} of X by more "
            f"than {LOST:.1%} of the standard deviation. Subtract an offset from such columns in "
            f"float64, or put a scaler before the model in a pipeline{by_type}.",
            PrecisionWarning,
        )
    if problem.targets.classes is None and problem.needs_labels and _loses(y):
        labels = True
        warn_user(
            f"float32 rounds y by more than {LOST:.1%} of its standard deviation, in the training "
            "and in predictions. Subtract an offset from y in float64, or set dtype='float64'.",
            PrecisionWarning,
        )
    return labels or (bool(lost) and not wide)


def _message_of_wide_inputs(columns: str, inputs: list[str]) -> str:
    return (
        f"float32 rounds {columns} of X by more than {LOST:.1%} of the standard deviation: the "
        "steps before the last one are computed in float64, and the trained ONNX model takes double "
        f"(float64) for {title_of_columns(inputs).replace('column', 'input', 1)}, not float."
    )


def _loses(y: Any) -> bool:
    if y is None or issparse(y):
        return False
    values = np.asarray(y)
    if values.dtype.kind not in "fiu":
        return False
    columns = values.reshape(len(values), -1).T
    # Too large a y is an error where labels are read.
    return any(LOST < rounding(column) < np.inf for column in columns)
