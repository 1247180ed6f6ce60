"""Fit a scikit-learn estimator so that it can be converted, as cheaply as its shapes allow."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

__all__ = ["fit_clone", "is_fitted"]

#: Parameters under which an estimator is fitted for its shapes only.
CHEAP = {
    MLPClassifier: {"max_iter": 1, "early_stopping": False, "solver": "sgd", "verbose": False},
    MLPRegressor: {"max_iter": 1, "early_stopping": False, "solver": "sgd", "verbose": False},
    SGDClassifier: {"max_iter": 1, "tol": None, "early_stopping": False},
    SGDRegressor: {"max_iter": 1, "tol": None, "early_stopping": False},
    LogisticRegression: {"max_iter": 1},
}


def is_fitted(estimator: BaseEstimator) -> bool:
    """Tell whether an estimator (of a pipeline: its last step) is fitted."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    try:
        check_is_fitted(last)
    except NotFittedError:
        return False
    return True


def _make_cheap(estimator: BaseEstimator) -> None:
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    last.set_params(**CHEAP.get(type(last), {}))


def _set_seeds(estimator: BaseEstimator, random_state: np.random.RandomState) -> None:
    seeds = {
        name: int(random_state.randint(np.iinfo(np.int32).max))
        for name, value in sorted(estimator.get_params(deep=True).items(), key=lambda item: item[0])
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    estimator.set_params(**seeds)


def fit_clone(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    sample_weight: np.ndarray | None = None,
    shapes_only: bool = False,
    random_state: np.random.RandomState | None = None,
) -> BaseEstimator:
    """Return a fitted clone; the estimator given is not changed.

    Parameters
    ----------
    estimator : estimator
        Unfitted estimator or pipeline.
    X : array-like of shape (n_samples, n_features)
        Training data.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows, passed on where the estimator's fit takes them.
    shapes_only : bool, default=False
        Whether learned weights will be drawn anew, so that a single iteration will do.
    random_state : numpy.random.RandomState, default=None
        Where seeds for parameters ``random_state=None`` come from.

    Returns
    -------
    estimator
        Fitted clone.
    """
    fitted = clone(estimator)
    if shapes_only:
        _make_cheap(fitted)
    if random_state is not None:
        _set_seeds(fitted, random_state)
    weights = {}
    if sample_weight is not None and has_fit_parameter(fitted, "sample_weight"):
        weights["sample_weight"] = sample_weight
    with warnings.catch_warnings():
        if shapes_only:
            warnings.simplefilter("ignore", ConvergenceWarning)
        return fitted.fit(X, y, **weights)
