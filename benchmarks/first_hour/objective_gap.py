"""Distance of a trained model from the minimum of the objective of its hyper-parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ortlearn.models import objective_of
from ortlearn.testing.objectives import _Slopes
from ortlearn.testing.running import run_reference

__all__ = ["objective_gap"]

#: Convex models that reach their minimum, and the parameters for it.
EXACT: dict[str, dict[str, Any]] = {
    "Ridge": {"solver": "cholesky"},
    "Lasso": {"tol": 1e-10, "max_iter": 100_000},
    "ElasticNet": {"tol": 1e-10, "max_iter": 100_000},
    "HuberRegressor": {"tol": 1e-9, "max_iter": 10_000},
    "QuantileRegressor": {},
    "PoissonRegressor": {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1_000},
    "GammaRegressor": {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1_000},
    "LogisticRegression": {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1_000},
    "LinearSVR": {"tol": 1e-8, "max_iter": 100_000},
    "LinearSVC": {"tol": 1e-8, "max_iter": 100_000},
}


def objective_gap(estimator: Any, X: np.ndarray, y: np.ndarray) -> Callable[[Any], float] | None:
    """Return the function that measures a fitted estimator, None for one without a convex objective.

    It returns (F - F*) / (F0 - F*), where F is the objective of the estimator on X and y, F* that of
    scikit-learn's fit with a small tolerance, and F0 that of weights that are all zero.
    """
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if type(last).__name__ not in EXACT:
        return None
    exact = clone(estimator)
    (exact.steps[-1][1] if isinstance(exact, Pipeline) else exact).set_params(**EXACT[type(last).__name__])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact.fit(X, y)
    objective = objective_of(exact, len(X))
    if objective is None:
        return None

    def values(fitted: Any) -> tuple[float, float]:
        """Return the objective of an estimator, and that of zero weights."""
        with np.errstate(all="ignore"):  # diverged weights
            graph = _Slopes.of(fitted, objective, X, y, np.full(len(X), 1 / len(X)), run_reference)
            trained = [name for name, parameter in graph.parameters.items() if not parameter.reason]
            zero = {**graph.feeds, **{name: np.zeros_like(graph.feeds[name]) for name in trained}}
            at_zero = run_reference(graph.model, zero)
        return tuple(
            float(np.sum(graph.weights.reshape(losses.shape) * losses) + penalty)
            for losses, penalty in (graph.fitted, at_zero)
        )

    best, zero = values(exact)
    return lambda fitted: (values(fitted)[0] - best) / (zero - best)
