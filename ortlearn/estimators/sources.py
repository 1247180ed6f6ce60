"""What is given to be trained: an error if it is nothing of the kind, and a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import conversion
from ..exceptions import ConversionError

__all__ = ["check_source", "fitted_source"]


def check_source(source: Any) -> None:
    """Raise an error if an object is neither an estimator nor an ONNX model.

    Parameters
    ----------
    source : object
        Parameter ``estimator``.

    Raises
    ------
    ConversionError
        If it is a class, has no ``fit``, is itself one that trains others, or ends without a model.
    """
    if conversion.is_onnx_source(source):
        return
    if isinstance(source, type) or not hasattr(source, "fit"):
        raise ConversionError(
            f"estimator must be a scikit-learn estimator object or an ONNX model, not {source!r}."
        )
    conversion.check_is_a_model(source)


def fitted_source(
    owner: Any,
    X: Any,
    y: Any,
    sample_weight: np.ndarray | None,
    random_state: np.random.RandomState,
    classes: Any = None,
) -> BaseEstimator:
    """Return an estimator that is fitted, a clone where the one given is not.

    Parameters
    ----------
    owner : BaseOrtGradientEstimator
        Whose estimator it is.
    X, y : array-like
        Rows and labels, to fit on.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the rows.
    random_state : numpy.random.RandomState
        Where seeds of that fit come from.
    classes : array-like, default=None
        Classes that may come.

    Returns
    -------
    estimator
        Fitted.
    """
    estimator = owner.estimator
    if conversion.is_fitted(estimator):
        return estimator
    return conversion.fit_clone(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        shapes_only=not owner.warm_start and owner.weights_to_train is None,
        random_state=random_state,
        classes=classes,
    )
