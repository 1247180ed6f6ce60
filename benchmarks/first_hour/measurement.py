"""Fit one pair by scikit-learn, by gradient from fresh weights, and by gradient from the fitted ones."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, d2_pinball_score, d2_tweedie_score, r2_score

from benchmarks.first_hour.datasets import split
from benchmarks.first_hour.objective_gap import objective_gap
from benchmarks.first_hour.pairs import Pair
from ortlearn import OrtGradientOptimizer

__all__ = ["Measured", "Training", "fit_watched", "measure", "score"]


@dataclass
class Training:
    """Training and its results.

    Attributes
    ----------
    score : float
        On the test samples; minus infinity where predictions are outside of what the metric is defined for.
    seconds : float
        Of the fit.
    error : str
        Exception of the fit or of the predictions, empty without one.
    warnings : list of str
        Warnings of the fit.
    rate : str
        Learning rate that was used.
    n_iter : int
        Epochs or iterations.
    gap : float or None
        Objective above its minimum, relative to that of zero weights: 0 at the minimum, 1 at zero weights.
        None where the model has no convex objective, or training failed.
    """

    score: float = float("nan")
    seconds: float = float("nan")
    error: str = ""
    warnings: list[str] = field(default_factory=list)
    rate: str = ""
    n_iter: int = 0
    gap: float | None = None


@dataclass
class Measured:
    """A row of the table.

    Attributes
    ----------
    name, metric : str
        Pair and name of the score.
    sklearn, fresh, warm : Training
        By scikit-learn, from fresh weights, and from those that scikit-learn found.
    """

    name: str
    metric: str
    sklearn: Training
    fresh: Training
    warm: Training


def score(metric: str, y: np.ndarray, predicted: np.ndarray) -> float:
    """Return a score of predictions by its name; at most 1."""
    if metric == "accuracy":
        return accuracy_score(y, predicted)
    if not np.isfinite(predicted).all():
        return -np.inf
    if metric == "R2":
        return r2_score(y, predicted)
    if metric.startswith("D2 pinball"):
        return d2_pinball_score(y, predicted, alpha=float(metric.split()[-1]))
    if np.min(predicted) <= 0:
        return -np.inf
    return d2_tweedie_score(y, predicted, power={"D2 Poisson": 1, "D2 Gamma": 2}[metric])


def fit_watched(model: Any, *samples: np.ndarray) -> Training:
    """Fit a model, and return seconds, warnings and the exception that ended it."""
    training = Training()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            model.fit(*samples)
        except Exception as error:  # what a user meets belongs into the table, whatever it is
            training.error = f"{type(error).__name__}: {error}"
        training.seconds = time.perf_counter() - start
    training.warnings = [f"{w.category.__name__}: {w.message}" for w in caught]
    training.rate = str(getattr(model, "learning_rate_", ""))
    n_iter = getattr(model, "n_iter_", None)
    training.n_iter = 0 if n_iter is None else int(np.max(n_iter))
    return training


def measure(pair: Pair, params: dict[str, Any]) -> list[Measured]:
    """Return the row of a pair.

    Parameters
    ----------
    pair : Pair
        Data set and model.
    params : dict
        Parameters of our estimator that are not left at their defaults.
    """
    X, X_test, y, y_test = split(pair.dataset)

    def train(model: Any, gap: Any) -> Training:
        training = fit_watched(model, X, y)
        if not training.error:
            try:
                training.score = float(score(pair.metric, y_test, model.predict(X_test)))
            except Exception as error:
                training.error = f"{type(error).__name__}: {error}"
        if not training.error and gap is not None:
            training.gap = gap(model if model is fitted else model.to_sklearn())
        return training

    fitted, gap = clone(pair.estimator()), objective_gap(pair.estimator(), X, y)
    by_sklearn = train(fitted, gap)
    fresh = OrtGradientOptimizer(clone(pair.estimator()), random_state=0, **params)
    warm = OrtGradientOptimizer(fitted, warm_start=True, random_state=0, **params)
    return [Measured(pair.name, pair.metric, by_sklearn, train(fresh, gap), train(warm, gap))]
