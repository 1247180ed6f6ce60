"""Gradients of predictions, plain and smoothed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..functions.bridge import one_matrix
from .explained_output import columns_of_output, explained_function, selection

__all__ = ["input_gradient", "smooth_gradient"]


def input_gradient(estimator: Any, X: Any, *, output: Any = None, method: str = "auto") -> np.ndarray:
    """Return the gradient of a prediction with respect to the features of each sample.

    Parameters
    ----------
    estimator : estimator, ONNX model or DifferentiableFunction
        Fitted model.
    X : array-like of shape (n_samples, n_features)
        Samples.
    output : int or str, default=None
        Class or column to explain; by default the only one, or the largest of each sample.
    method : str, default="auto"
        Output, as in :func:`ortlearn.functions.differentiable`; by default ``predict_proba`` or
        ``decision_function`` of a classifier, and ``predict`` of a regressor.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Gradients.

    Raises
    ------
    GradientError
        If the output is piecewise constant.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.inspection import input_gradient
    >>> model = Ridge().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.0, 1.0, 2.0])
    >>> bool((input_gradient(model, [[1.0, 1.0]]) == model.coef_).all())
    True
    """
    function = explained_function(estimator, method, X)
    value = function(X)
    return function.vjp(X, selection(value, columns_of_output(function, value, output)))


def smooth_gradient(
    estimator: Any,
    X: Any,
    *,
    scale: Any = 0.1,
    n_samples: int = 50,
    output: Any = None,
    method: str = "auto",
    random_state: Any = None,
) -> np.ndarray:
    """Return gradients that are averaged over Gaussian noise on the features.

    It is SmoothGrad (Smilkov et al., arXiv:1706.03825): the gradient of the prediction smoothed by the noise.

    Parameters
    ----------
    estimator : estimator, ONNX model or DifferentiableFunction
        Fitted model.
    X : array-like of shape (n_samples, n_features)
        Samples.
    scale : float or array-like of shape (n_features,), default=0.1
        Standard deviation of the noise, in units of the features.
    n_samples : int, default=50
        Number of draws, in pairs of opposite noise.
    output : int or str, default=None
        Class or column to explain, as in :func:`input_gradient`.
    method : str, default="auto"
        Output, as in :func:`input_gradient`.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Averaged gradients.

    Raises
    ------
    GradientError
        If the output is piecewise constant.
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.inspection import smooth_gradient
    >>> model = Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> smooth_gradient(model, [[1.0]], random_state=0).round(6).tolist() == [model.coef_.round(6).tolist()]
    True
    """
    width = np.asarray(scale, dtype=np.float64)
    if n_samples < 1 or not (width >= 0).all():
        raise ValueError(f"scale={scale!r} must not be negative, and n_samples={n_samples!r} positive.")
    function, random = explained_function(estimator, method, X), check_random_state(random_state)
    bare, samples = one_matrix(function), function.read(X)
    value = bare(samples)
    u = selection(value, columns_of_output(function, value, output))
    total, count = np.zeros(samples.shape), (n_samples + 1) // 2
    for _ in range(count):
        noise = (random.standard_normal(samples.shape) * width).astype(samples.dtype)
        total += bare.vjp(samples + noise, u) + bare.vjp(samples - noise, u)
    return total / (2 * count)
