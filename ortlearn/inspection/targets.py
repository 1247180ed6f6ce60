"""Desired predictions as constraints."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..functions.bare import BareFunction
from ..quiet import quiet

__all__ = ["Target", "numbers", "predictions", "target_of"]


def predictions(estimator: Any, X: np.ndarray) -> np.ndarray:
    """Return predictions for an array, also of an estimator that was fitted with names of features."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) == X.shape[1]:
        with suppress(ImportError):
            import pandas as pd

            X = pd.DataFrame(X, columns=names)  # its steps may select columns by name
    with quiet():
        return np.asarray(estimator.predict(X))


def numbers(X: Any) -> np.ndarray:
    """Return samples as an array of numbers."""
    try:
        return np.array(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X must be numbers ({error}): pass the part of the model after its encoder, and encoded samples."
        ) from error


@dataclass(frozen=True)
class Target:
    """A class, as the index of its score, or an interval of values."""

    method: str
    label: Any = None
    index: int = 0
    low: float = -np.inf
    high: float = np.inf

    def holds(self, estimator: Any, X: np.ndarray) -> np.ndarray:
        """Return whether the estimator predicts the target for samples."""
        predicted = predictions(estimator, X)
        if self.label is not None:
            return predicted == self.label
        if predicted.ndim > 1 and predicted.shape[1] > 1:
            raise ValueError("counterfactual needs a regressor with one output.")
        return (predicted.ravel() >= self.low) & (predicted.ravel() <= self.high)

    def constraints(self, bare: BareFunction, sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values that are positive if a sample has the target, and their Jacobian."""
        if self.label is None or bare.graphs.rank == 1:
            found, gradient = bare.value_and_gradient(sample)
            value, slope = found.ravel().astype(np.float64), gradient.astype(np.float64)
            if self.label is not None:  # decisions, positive for the second class
                sign = 1.0 if self.index == 1 else -1.0
                return sign * value, sign * slope
            sides = [(1.0, self.low), (-1.0, self.high)]
            kept = [(sign, sign * limit) for sign, limit in sides if np.isfinite(limit)]
            values = [sign * value - limit for sign, limit in kept]
            return np.concatenate(values), np.vstack([sign * slope for sign, _ in kept])
        scores = bare(sample).astype(np.float64)[0]
        repeated = np.repeat(sample, len(scores), axis=0)  # a class each
        slopes = bare.vjp(repeated, np.eye(len(scores), dtype=sample.dtype)).astype(np.float64)
        others = np.arange(len(scores)) != self.index
        return scores[self.index] - scores[others], slopes[self.index] - slopes[others]


def target_of(estimator: Any, target: Any) -> Target:
    """Return a checked target of an estimator."""
    if not hasattr(estimator, "predict"):
        raise TypeError(
            "counterfactual and adversarial_radius take a fitted estimator with predict, not "
            f"{type(estimator).__name__}: pass the estimator itself. Counterfactuals of trees need "
            "candidates=X, samples among which they are searched."
        )
    if is_classifier(estimator):
        classes = getattr(estimator, "classes_", None)
        if classes is None or isinstance(classes, list):
            raise ValueError("counterfactual and adversarial_radius need a classifier with one output.")
        matching = [index for index, known in enumerate(classes) if known == target]
        if not matching:
            raise ValueError(f"target={target!r} is not one of the classes {list(classes)}.")
        names = ("decision_function", "predict_log_proba", "predict_proba")
        method = next(name for name in names if hasattr(estimator, name))
        if method == "decision_function" and getattr(estimator, "decision_function_shape", "ovr") == "ovo":
            method = "predict_proba" if hasattr(estimator, "predict_proba") else method
        return Target(method, classes[matching[0]], matching[0])
    low, high = target if isinstance(target, tuple | list) and len(target) == 2 else (target, target)
    if not (
        isinstance(low, int | float | np.number) and isinstance(high, int | float | np.number) and low <= high
    ):
        raise ValueError(f"target={target!r} must be an interval (low, high) of predictions.")
    if low == high:
        raise ValueError(
            f"target={target!r} is a single value, which is met up to rounding at best: pass (low, high)."
        )
    return Target("predict", low=float(low), high=float(high))
