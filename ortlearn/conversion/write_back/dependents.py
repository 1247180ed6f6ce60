"""What of a fitted estimator follows from its attributes, and must follow once these are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..weights.fitted_attributes import known_class

__all__ = ["refresh"]


def refresh(estimator: Any) -> None:
    """Compute anew what follows from an estimator's own attributes.

    Parameters
    ----------
    estimator : object
        Fitted estimator, or a part of one; changed in place.
    """
    function = DEPENDENTS.get(known_class(estimator))
    if function is not None:
        function(estimator)


def _svm(model: Any) -> None:
    """Write what libsvm reads: of two classes, dual coefficients and intercept with the other sign."""
    sign = -1 if len(getattr(model, "classes_", ())) == 2 else 1
    model._intercept_ = sign * np.asarray(model.intercept_)
    model._dual_coef_ = sign * model.dual_coef_
    if hasattr(model, "offset_"):
        model.offset_ = -model._intercept_


def _tree(tree: Any) -> None:
    """Divide the shares of classes of each leaf by their sum."""
    leaves = tree.children_left < 0
    if tree.value.shape[-1] > 1:
        tree.value[leaves] /= tree.value[leaves].sum(axis=-1, keepdims=True)


def _neighbours(model: Any) -> None:
    """Build the tree of the rows anew."""
    tree = getattr(model, "_tree", None)
    if tree is None:
        return
    rows = np.asarray(model._fit_X)
    metric = model.effective_metric_
    model._tree = type(tree)(rows, model.leaf_size, metric=metric, **model.effective_metric_params_)


def _isotonic(model: Any) -> None:
    model._build_f(model.X_thresholds_, model.y_thresholds_)


def _mixture(model: Any) -> None:
    """Compute ``P P'`` and its inverse from the Cholesky factors P of the precisions."""
    cholesky = model.precisions_cholesky_
    if model.covariance_type in ("diag", "spherical"):
        model.precisions_ = np.square(cholesky)
        model.covariances_ = 1 / model.precisions_
        return
    model.precisions_ = cholesky @ np.swapaxes(cholesky, -1, -2)
    model.covariances_ = np.linalg.inv(model.precisions_)


def _standard_scaler(model: Any) -> None:
    if model.scale_ is not None:
        model.var_ = np.square(model.scale_)


def _max_abs_scaler(model: Any) -> None:
    model.max_abs_ = np.array(model.scale_)


def _gaussian_process(model: Any) -> None:
    """Factorise the kernel of the rows anew, which only deviations are computed from."""
    kernel = model.kernel_(model.X_train_)
    kernel[np.diag_indices_from(kernel)] += model.alpha
    model.L_ = np.linalg.cholesky(kernel)


#: What to compute anew, by name of the class.
DEPENDENTS: dict[str, Callable[[Any], None]] = {
    "BayesianGaussianMixture": _mixture,
    "GaussianMixture": _mixture,
    "GaussianProcessRegressor": _gaussian_process,
    "IsotonicRegression": _isotonic,
    "MaxAbsScaler": _max_abs_scaler,
    "StandardScaler": _standard_scaler,
    "Tree": _tree,
    **dict.fromkeys(("NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR"), _svm),
    **dict.fromkeys(
        (
            "KNeighborsClassifier",
            "KNeighborsRegressor",
            "KNeighborsTransformer",
            "LocalOutlierFactor",
            "NearestNeighbors",
            "RadiusNeighborsClassifier",
            "RadiusNeighborsRegressor",
            "RadiusNeighborsTransformer",
        ),
        _neighbours,
    ),
}
