"""Does the ONNX model compute what the scikit-learn estimator does? Compared on a few rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ..exceptions import FidelityWarning, warn_user
from ..quiet import quiet
from .inference import Inference

__all__ = ["TOLERANCE", "compare_with_sklearn", "some_rows", "take"]

#: Differences up to this one are rounding.
TOLERANCE = 1e-3
#: Rows looked at.
ROWS = 64


def some_rows(n_rows: int) -> np.ndarray:
    """Return the numbers of a few samples, far apart."""
    return np.unique(np.linspace(0, n_rows - 1, ROWS).astype(np.int64))


def compare_with_sklearn(
    runner: Inference, estimator: BaseEstimator, X: Any, rows: Any, y: Any = None
) -> None:
    """Warn where the graph and the estimator it was converted from differ.

    Parameters
    ----------
    runner : Inference
        The graph as it was converted.
    estimator : estimator
        Fitted estimator.
    X : array-like of shape (n_samples, n_features)
        Rows as the estimator takes them.
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
        The same as the graph takes them.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Labels: the predictions of a regressor are compared in units of their standard deviation.
    """
    chosen = some_rows(rows.shape[0])
    method = _method(runner, estimator)
    # Under another link than its own, a model is meant to predict something else.
    if method is None or not hasattr(estimator, method) or runner.problem.trainable.link != "identity":
        return
    ours = METHODS[method](runner, rows[chosen])
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
        f"before you rely on it; where scaled features tie with thresholds of trees, dtype='float64' helps."
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
    if get_tags(estimator).estimator_type == "outlier_detector":
        return "decision_function"  # rows at the boundary may have either label
    return "predict"


METHODS: dict[str, Callable[[Inference, Any], Any]] = {
    "decision_function": lambda runner, rows: runner.scores(rows),
    "predict": lambda runner, rows: runner.predict(rows),
    "predict_proba": lambda runner, rows: runner.probabilities(rows),
    "score_samples": lambda runner, rows: runner.likelihoods(rows),
    "transform": lambda runner, rows: runner.transform(rows),
}


def _spread(y: Any) -> float:
    """Return the standard deviation of labels that are numbers, 0 for others."""
    if y is None or issparse(y) or np.asarray(y).dtype.kind not in "fiu":
        return 0.0
    with np.errstate(over="ignore"):
        return float(np.max(np.std(np.asarray(y, dtype=np.float64), axis=0), initial=0.0))


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
        apart = np.nan_to_num(np.abs(ours - theirs) / scale, nan=np.inf)
        apart[np.isnan(ours) & np.isnan(theirs)] = 0.0
    return apart.reshape(len(apart), -1).max(axis=1)


def take(X: Any, rows: np.ndarray) -> Any:
    """Return a copy of some samples of an array, a sparse matrix or a frame."""
    if hasattr(X, "iloc"):
        some = X.iloc[rows]
        return some.copy() if hasattr(some, "copy") else some  # pandas may share the memory of all rows
    if isinstance(X, list):  # of numbers and texts: an array of it would be texts
        return [X[row] for row in rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]
