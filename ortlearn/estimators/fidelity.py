"""Warnings where the ONNX model computes something else than the scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..exceptions import FidelityWarning, PrecisionWarning, warn_user
from ..preprocessing.rounding import LOST, rounded_columns, rounding, title_of_columns
from ..quiet import quiet
from .configuration import Runtime
from .inference import Inference
from .problem import Problem
from .samples import Samples, take

__all__ = ["TOLERANCE", "compare_with_sklearn", "warn_of_differences", "warn_of_rounding"]

#: Differences up to this one are rounding.
TOLERANCE = 1e-3
#: Samples compared.
ROWS = 64


def warn_of_differences(problem: Problem, samples: Samples, rows: Any, runtime: Runtime) -> None:
    """Warn where float32 has too few digits for X or y, or where scikit-learn predicts something else."""
    front, X = problem.trainable.entry.front, samples.X
    some = X if front is None else front.transform(take(X, _some_samples(rows.shape[0])))
    loses_digits = warn_of_rounding(problem, some, samples.y)
    if problem.source is not None and not loses_digits:
        runner = Inference(problem, problem.trainable.model, runtime, fused=False)
        compare_with_sklearn(runner, problem.source, X, rows, samples.y)


def _some_samples(n_rows: int) -> np.ndarray:
    """Return the numbers of a few samples, far apart."""
    return np.unique(np.linspace(0, n_rows - 1, ROWS).astype(np.int64))


def compare_with_sklearn(
    runner: Inference, estimator: BaseEstimator, X: Any, rows: Any, y: Any = None
) -> None:
    """Warn where a graph and the fitted estimator that it was converted from differ on a few samples.

    X is what the estimator takes, ``rows`` what the graph does. Predictions of a regressor are compared in
    units of the standard deviation of y.
    """
    chosen = _some_samples(rows.shape[0])
    method = _method(runner, estimator)
    # Under another link than its own, a model is meant to predict something else.
    if method is None or not hasattr(estimator, method) or runner.problem.trainable.link != "identity":
        return
    ours = getattr(runner, method)(rows[chosen])
    with quiet():  # warnings of the fit were given before
        theirs = getattr(estimator, method)(take(X, chosen))
    difference = _differences(ours, theirs, _spread(y) if method == "predict" else 0.0)
    worst = int(np.argmax(difference))
    if difference[worst] > TOLERANCE:
        warn_user(_message(estimator, method, difference, chosen[worst]), FidelityWarning)


def _message(estimator: Any, method: str, difference: np.ndarray, row: int) -> str:
    many = int(np.sum(difference > TOLERANCE))
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return (
        f"The ONNX model of {type(last).__name__} differs from scikit-learn's {method} by up to "
        f"{difference.max():.3g}, at row {row} ({many} of {len(difference)} rows looked at differ by more "
        f"than {TOLERANCE}). The ONNX model is what is trained and what predicts: compare both on your data "
        f"before you rely on it. dtype='float64' helps where float32 is the reason: features that tie with "
        f"thresholds of trees, coefficients of support vectors in the thousands."
    )


def _method(runner: Inference, estimator: Any) -> str | None:
    """Return the method that says most of what both compute."""
    head = runner.problem.trainable.head
    if head is None:
        return None
    if head.transformed is not None:
        return "transform"
    if head.likelihood is not None:
        return "score_samples"
    if head.probabilities is not None and hasattr(estimator, "predict_proba"):
        return "predict_proba"
    if head.task != "regression" and head.has_decisions and hasattr(estimator, "decision_function"):
        return "decision_function"  # rows at the boundary may have either label, and few others show a tie
    return "predict"


def _spread(y: Any) -> float:
    """Return the standard deviation of labels that are numbers, 0 for others."""
    if y is None or issparse(y) or np.asarray(y).dtype.kind not in "fiu":
        return 0.0
    values = np.asarray(y, dtype=np.float64)
    with np.errstate(over="ignore"):
        deviations = np.where(
            np.ptp(values, axis=0) > 0, np.std(values, axis=0), 0.0
        )  # not what rounding leaves
    return float(np.max(deviations, initial=0.0))


def _differences(ours: Any, theirs: Any, scale: float) -> np.ndarray:
    """Return how far apart each row is: classes are equal or not, numbers by a scale or the largest."""
    if isinstance(theirs, list):
        return np.max([_differences(a, b, scale) for a, b in zip(ours, theirs, strict=True)], axis=0)
    theirs, ours = (found.toarray() if issparse(found) else np.asarray(found) for found in (theirs, ours))
    ours = ours.reshape(theirs.shape)
    if theirs.dtype.kind != "f":
        apart = (ours != theirs).astype(np.float64)
    else:
        scale = scale or max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        with np.errstate(invalid="ignore"):  # infinite ones
            apart = np.nan_to_num(np.abs(ours - theirs) / scale, nan=np.inf)
        apart[(ours == theirs) | (np.isnan(ours) & np.isnan(theirs))] = 0.0
    return apart.reshape(len(apart), -1).max(axis=1)


def warn_of_rounding(problem: Problem, X: Any, y: Any) -> bool:
    """Warn where float32 rounds away digits of X or y that matter, and return whether predictions suffer.

    They do not where steps in front are computed in float64. X is as the graph takes it, before it has the
    graph's type.
    """
    if problem.dtype != np.float32:
        return False
    schema = problem.trainable.entry.schema
    lost = rounded_columns(X, schema)
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
