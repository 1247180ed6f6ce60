"""Predictions of one column in the shape that y had: (n,) or (n, 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..preparation.kinds import last_step

__all__ = ["shape_predictions"]


def shape_predictions(estimator: Any, n_dimensions: int) -> None:
    """Make a regressor of one output predict (n,) or (n, 1), where its attributes can tell which.

    Linear models can, nearest neighbours, ``PLSRegression`` and ``TransformedTargetRegressor``; pipelines,
    searches and stacks that end with one, too. All others are left.

    Parameters
    ----------
    estimator : estimator
        Fitted regressor; changed in place.
    n_dimensions : {1, 2}
        Dimensions of its predictions.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion.write_back.shapes import shape_predictions
    >>> model = Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> shape_predictions(model, 2)
    >>> model.coef_.shape, model.predict([[0.5]]).shape
    ((1, 1), (1, 1))
    """
    names = _sklearn_names(estimator)
    inner = _predicting_part(estimator, names)
    if inner is not None:
        shape_predictions(inner, n_dimensions)
        return
    for name in names:
        if name in SHAPERS:
            SHAPERS[name](estimator, n_dimensions)
            return


def _sklearn_names(estimator: Any) -> list[str]:
    """Return the names of an estimator's classes that are scikit-learn's: asking by name imports nothing."""
    return [kind.__name__ for kind in type(estimator).__mro__ if kind.__module__.startswith("sklearn.")]


def _predicting_part(estimator: Any, names: list[str]) -> Any:
    """Return the estimator whose predictions another one passes on as they are; None where there is none."""
    if isinstance(estimator, Pipeline):
        return last_step(estimator)
    return next((getattr(estimator, PASSED_ON[name]) for name in names if name in PASSED_ON), None)


def _linear(model: Any, n_dimensions: int) -> None:
    coef = np.asarray(model.coef_)
    if coef.ndim == n_dimensions:
        return
    model.coef_ = coef.reshape(1, -1) if n_dimensions == 2 else coef.ravel()
    if np.size(model.intercept_) == 1 and getattr(model, "fit_intercept", True):
        intercept = np.asarray(model.intercept_)
        model.intercept_ = intercept.reshape(1) if n_dimensions == 2 else intercept.reshape(())[()]


def _neighbours(model: Any, n_dimensions: int) -> None:
    model._y = model._y.reshape((-1, 1)[:n_dimensions])


def _partial_least_squares(model: Any, n_dimensions: int) -> None:
    model._predict_1d = n_dimensions == 1


def _transformed_target(model: Any, n_dimensions: int) -> None:
    model._training_dim = n_dimensions


#: How to choose the shape, by name of the class.
SHAPERS: dict[str, Callable[[Any, int], None]] = {
    "KNeighborsRegressor": _neighbours,
    "LinearModel": _linear,
    "RadiusNeighborsRegressor": _neighbours,
    "TransformedTargetRegressor": _transformed_target,
    "_PLS": _partial_least_squares,
}
#: Attribute with the estimator whose predictions are passed on, by name of the class.
PASSED_ON = {
    "BaseSearchCV": "best_estimator_",
    "FrozenEstimator": "estimator",
    "RANSACRegressor": "estimator_",
    "StackingRegressor": "final_estimator_",
}
