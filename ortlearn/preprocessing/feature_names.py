"""Check that the columns of X are those that an estimator was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_feature_names, _get_feature_names

from ..models import unwrapped
from ..models.pipelines import IDLE
from ..quiet import quiet
from .readers import selects_by_name

__all__ = ["check_feature_names"]


def check_feature_names(estimator: Any, X: Any) -> None:
    """Raise scikit-learn's error if X has other columns than a fitted estimator, or in another order.

    Parameters
    ----------
    estimator : estimator
        Fitted. One that selects columns by name takes them in any order.
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Samples.

    Raises
    ------
    ValueError
        If names or their order differ, where both have names.

    Examples
    --------
    >>> import pandas
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion import check_feature_names
    >>> X = pandas.DataFrame({"size": [1.0, 2.0], "age": [3.0, 5.0]})
    >>> check_feature_names(Ridge().fit(X, [0, 1]), X[["age", "size"]])
    Traceback (most recent call last):
    ...
    ValueError: The feature names should match those that were passed during fit...
    """
    first = _first_step(estimator)
    known, own = getattr(first, "feature_names_in_", None), _get_feature_names(X)
    if known is None or own is None or np.array_equal(known, own):
        return
    core = unwrapped(estimator)
    if selects_by_name(core) or (isinstance(core, Pipeline) and _takes(core, X)):
        return
    _check_feature_names(first, X, reset=False)


def _first_step(estimator: Any) -> Any:
    """Return what reads X first."""
    while isinstance(estimator, Pipeline):
        estimator = next((step for _, step in estimator.steps if step not in IDLE), None)
    return estimator


def _takes(pipeline: Pipeline, X: Any) -> bool:
    """Return whether a pipeline takes a sample all the same: a function may select its columns by name."""
    method = next((m for m in ("predict", "transform", "score_samples") if hasattr(pipeline, m)), "predict")
    try:
        with quiet():
            getattr(pipeline, method)(_safe_indexing(X, np.array([0])))
    except Exception:  # whatever a step raises, it does not take them
        return False
    return True
