"""Adapt one model to new rows in four ways, and measure each on other new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.drift.cases import Case
from benchmarks.drift.data import SIZES, drifted
from benchmarks.first_hour.measurement import fit_watched
from ortlearn import OrtGradientOptimizer

__all__ = ["CONTENDERS", "Adapted", "Row", "adapt", "brier", "measure"]

CONTENDERS = ("old model", "refit on new", "refit on both", "warm start")


@dataclass
class Adapted:
    """A model on the test rows from after the drift.

    Attributes
    ----------
    accuracy : float
        Share of the rows with the right class.
    brier : float
        Mean squared error of the probabilities, summed over classes: 0 to 2.
    seconds : float
        Of the fit.
    error : str
        Exception, empty without one.
    warnings : list of str
        Warnings of the fit.
    """

    accuracy: float
    brier: float
    seconds: float
    error: str
    warnings: list[str]


@dataclass
class Row:
    """A row of the table.

    Attributes
    ----------
    name, drift : str
        Case and its kind of drift.
    n_new : int
        Number of new rows.
    adapted : dict of str to Adapted
        Results, by contender.
    """

    name: str
    drift: str
    n_new: int
    adapted: dict[str, Adapted]


def brier(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean squared error of a model's probabilities, summed over classes.

    A class that the model does not know has probability 0.
    """
    classes = np.union1d(model.classes_, y)
    probabilities = np.zeros((len(y), len(classes)))
    probabilities[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return float(np.mean(np.sum((probabilities - (y[:, None] == classes)) ** 2, axis=1)))


def adapt(model: Any, fit_on: tuple | None, test: tuple) -> Adapted:
    """Fit a model on some rows, or on none, and measure it on others."""
    training = fit_watched(model, *fit_on) if fit_on else None
    error = training.error if training else ""
    accuracy = brier_score = float("nan")
    if not error:
        X, y = test
        try:
            accuracy = float(np.mean(model.predict(X) == y))
            brier_score = brier(model, X, y)
        except Exception as exception:
            error = f"{type(exception).__name__}: {exception}"
    seconds, warnings = (training.seconds, training.warnings) if training else (0.0, [])
    return Adapted(accuracy, brier_score, seconds, error, warnings)


def measure(case: Case, params: dict[str, Any]) -> list[Row]:
    """Return a row for each number of new rows.

    Parameters
    ----------
    case : Case
        Model and data.
    params : dict
        Parameters of our estimator that are not left at their defaults.
    """
    data = drifted(case.source, case.drift, case.seed)
    test = (data.X_test, data.y_test)
    old = case.estimator()
    fit_watched(old, data.X_old, data.y_old)
    before, rows = adapt(old, None, test), []
    for n_new in SIZES[case.source]:
        new = data.X_new[:n_new], data.y_new[:n_new]
        both = np.concatenate([data.X_old, new[0]]), np.concatenate([data.y_old, new[1]])
        warm = OrtGradientOptimizer(old, warm_start=True, random_state=0, **params)
        results = [
            before,
            adapt(case.estimator(), new, test),
            adapt(case.estimator(), both, test),
            adapt(warm, new, test),
        ]
        rows.append(Row(case.name, case.drift, n_new, dict(zip(CONTENDERS, results, strict=True))))
    return rows
