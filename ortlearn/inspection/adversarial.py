"""Upper bounds of the distance to another prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..functions import DifferentiableFunction, differentiable
from .targets import Target, numbers, predictions, target_of

__all__ = ["adversarial_radius"]

ITERATIONS, BISECTIONS = 50, 30
OVERSHOOT = 0.02  # of a step, to pass the boundary


def adversarial_radius(estimator: Any, X: Any, *, norm: str = "l2") -> np.ndarray:
    """Return an upper bound of the distance from each sample to the nearest one of another class.

    A step goes to the boundary of the nearest class in the linear approximation of the scores, until
    ``predict`` changes (DeepFool; Moosavi-Dezfooli, Fawzi and Frossard, CVPR 2016); the line to it is then
    bisected. A sample of another class was found at the returned distance, so that the true radius is at most
    that; a nearer one may exist.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier on a numeric matrix, with a gradient.
    X : array-like of shape (n_samples, n_features)
        Samples.
    norm : {"l2", "linf"}, default="l2"
        Distance: Euclidean, or the largest change of a feature.

    Returns
    -------
    ndarray of shape (n_samples,)
        Upper bounds, infinite where no sample of another class was found.

    Raises
    ------
    GradientError
        If the scores have no gradient.
    ValueError
        If the model is not a classifier.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ortlearn.inspection import adversarial_radius
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> adversarial_radius(model, [[1.0], [3.5]]).round(3).tolist()
    [0.5, 2.0]
    """
    if norm not in ("l2", "linf"):
        raise ValueError(f"norm={norm!r} must be 'l2' or 'linf'.")
    classes = getattr(estimator, "classes_", None)
    if classes is None or isinstance(classes, list) or len(classes) < 2:
        raise ValueError("adversarial_radius needs a fitted classifier with one output and several classes.")
    target = target_of(estimator, classes[0])
    function = differentiable(estimator, target.method)
    return np.array([_radius(estimator, function, target, sample, norm) for sample in numbers(X)])


def _radius(
    estimator: Any, function: DifferentiableFunction, target: Target, x: np.ndarray, norm: str
) -> float:
    own = predictions(estimator, x[None])[0]
    target = replace(target, label=own, index=list(estimator.classes_).index(own))

    def changed(z: np.ndarray) -> bool:
        return bool(predictions(estimator, z[None])[0] != own)

    z = x.copy()
    for _ in range(ITERATIONS):
        sample = np.ascontiguousarray(z[None], dtype=function.dtype)
        step = _step(*target.constraints(function.bare, sample), norm)
        if step is None:
            break
        z = z + (1 + OVERSHOOT) * step
        if changed(z):
            low, high = 0.0, 1.0
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                low, high = (low, middle) if changed(x + middle * (z - x)) else (middle, high)
            nearest = high * (z - x)
            return float(np.abs(nearest).max() if norm == "linf" else np.linalg.norm(nearest))
    return np.inf


def _step(gaps: np.ndarray, slopes: np.ndarray, norm: str) -> np.ndarray | None:
    """Return the shortest step to a gap of zero, if gaps were linear; None without a slope."""
    dual = np.abs(slopes).sum(axis=1) if norm == "linf" else np.linalg.norm(slopes, axis=1)
    usable = dual > 0
    if not usable.any() or not np.isfinite(dual).all():
        return None
    distances = np.where(usable, (np.maximum(gaps, 0) + 1e-9) / np.where(usable, dual, 1.0), np.inf)
    nearest = int(distances.argmin())
    slope = np.sign(slopes[nearest]) if norm == "linf" else slopes[nearest] / dual[nearest]
    return -distances[nearest] * slope
