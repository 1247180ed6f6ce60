"""Comparison of the ONNX model with the scikit-learn estimator, on a few samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..exceptions import FidelityWarning, warn_user
from ..quiet import quiet
from .inference import Inference
from .samples import take

__all__ = ["TOLERANCE", "compare_with_sklearn", "some_samples"]

#: Differences up to this one are rounding.
TOLERANCE = 1e-3
#: Samples compared.
ROWS = 64


def some_samples(n_rows: int) -> np.ndarray:
    """Return the numbers of a few samples, far apart."""
    return np.unique(np.linspace(0, n_rows - 1, ROWS).astype(np.int64))


def compare_with_sklearn(
    runner: Inference, estimator: BaseEstimator, X: Any, rows: Any, y: Any = None
) -> None:
    """Warn where a graph and the fitted estimator that it was converted from differ on a few samples.

    Parameters
    ----------
    runner : Inference
        Graph as it was converted.
    estimator : estimator
        Fitted estimator.
    X : array-like of shape (n_samples, n_features)
        Samples as the estimator takes them.
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
        The same as the graph takes them.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Labels: the predictions of a regressor are compared in units of their standard deviation.
    """
    chosen = some_samples(rows.shape[0])
    method = _method(runner, estimator)
    # Under another link than its own, a model is meant to predict something else.
    if method is None or not hasattr(estimator, method) or runner.problem.trainable.kind.link != "identity":
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
    if runner.problem.trainable.kind.kind == "outliers":
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
