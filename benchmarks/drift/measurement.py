"""Adapt one model to new samples in four ways, and measure each on other new samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.drift.cases import Case
from benchmarks.drift.data import SIZES, drifted
from benchmarks.first_hour.measurement import fit_watched
from ortlearn import OrtGradientOptimizer

__all__ = ["CONTENDERS", "Adapted", "Row", "adapt", "averaged", "brier", "measure"]

#: How often new samples are drawn for a case.
N_DRAWS = 3
CONTENDERS = ("old model", "refit on new", "refit on both", "warm start")


@dataclass
class Adapted:
    """A model on the test samples from after the drift.

    Attributes
    ----------
    accuracy : float
        Share of the samples with the right class.
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
    name, drift, scaling : str
        Case, its kind of drift, and whether features are ``"raw"`` or ``"scaled"``.
    n_new : int
        Number of new samples.
    adapted : dict of str to Adapted
        Results, by contender.
    """

    name: str
    drift: str
    scaling: str
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


def adapt(model: Any, fit_on: tuple | None, test: Sequence) -> Adapted:
    """Fit a model on some samples, or on none, and measure it on others."""
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


def averaged(several: list[Adapted]) -> Adapted:
    """Return the means of some results; nan and the error if one of them failed."""
    numbers = {n: float(np.mean([getattr(r, n) for r in several])) for n in ("accuracy", "brier", "seconds")}
    error = next((result.error for result in several if result.error), "")
    return Adapted(**numbers, error=error, warnings=[text for result in several for text in result.warnings])


def measure(case: Case, params: dict[str, Any]) -> list[Row]:
    """Return a row for each number of new samples: means over the draws of these.

    Parameters
    ----------
    case : Case
        Model and data.
    params : dict
        Parameters of our estimator that are not left at their defaults.
    """
    data = drifted(case.source, case.drift, case.seed, N_DRAWS)
    old, rows = case.estimator(), []
    fit_watched(old, data.X_old, data.y_old)
    for n_new in SIZES[case.source]:
        found: dict[str, list[Adapted]] = {name: [] for name in CONTENDERS}
        for X_new, y_new, *test in data.draws:
            new = X_new[:n_new], y_new[:n_new]
            both = np.concatenate([data.X_old, new[0]]), np.concatenate([data.y_old, new[1]])
            warm = OrtGradientOptimizer(old, warm_start=True, random_state=0, **params)
            found["old model"].append(adapt(old, None, test))
            found["refit on new"].append(adapt(case.estimator(), new, test))
            found["refit on both"].append(adapt(case.estimator(), both, test))
            found["warm start"].append(adapt(warm, new, test))
        means = {name: averaged(results) for name, results in found.items()}
        rows.append(Row(case.name, case.drift, case.scaling, n_new, means))
    return rows
