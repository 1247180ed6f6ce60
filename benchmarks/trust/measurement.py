"""Fit an estimator by itself, from fresh weights, and from its own ones on four kinds of samples."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.first_hour.measurement import fit_watched
from benchmarks.trust.datasets import is_classification, parts
from benchmarks.trust.estimators import ONE_COLUMN, estimator, takes_columns
from ortlearn import OrtGradientOptimizer

__all__ = ["STARTS", "Case", "Fits", "Row", "measure"]

#: How a model is trained: from fresh weights, and from its own on four kinds of samples.
STARTS = ("fresh", "same", "new", "drifted")


@dataclass(frozen=True)
class Case:
    """A data set, ``"raw"`` or ``"scaled"`` features, and an estimator."""

    dataset: str
    scaling: str
    model: str

    @property
    def name(self) -> str:
        """All three, as the table shows them."""
        return f"{self.dataset} {self.scaling} {self.model}"


@dataclass
class Fits:
    """Results of one start over splits.

    Attributes
    ----------
    gains : list of float
        Test score minus that of the estimator's own fit, per split.
    seconds, own_seconds : list of float
        Of processor time, of the fit and of the estimator's own; threads of other packages are one.
    kept : list of bool
        Whether the starting weights were kept.
    error : str
        First exception, empty without one.
    """

    gains: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    own_seconds: list[float] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    error: str = ""


@dataclass
class Row:
    """Results of a case: its splits, the estimator's own scores, and the results of each start."""

    name: str
    splits: list[int] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    fits: dict[str, Fits] = field(default_factory=dict)
    skipped: str = ""


def measure(
    case: Case, seeds: Iterable[int], params: dict[str, Any] | None = None, starts: Iterable[str] = STARTS
) -> Row:
    """Return the results of a case; ``skipped`` says why its own fit failed, or that it has no weights."""
    row = Row(case.name, fits={start: Fits() for start in STARTS})
    by_class = is_classification(case.dataset)
    for seed in seeds:
        row.splits.append(seed)
        data = parts(case.dataset, seed, takes_columns(case.model))
        if case.model in ONE_COLUMN:
            one = {name: (X[:, 0], y) for name, (X, y) in vars(data).items()}
            data = type(data)(**one)
        own = estimator(case.model, by_class, case.scaling == "scaled")
        with contextlib.redirect_stdout(io.StringIO()):
            training, own_seconds = _fitted(own, data.train)
            score, failure = (None, training.error) if training.error else _score(own, data.test)
            if score is None:
                row.skipped = failure
                return row
            row.own.append(score)
            for start in starts:
                _try(row.fits[start], start, own, data, own_seconds, params or {})
        errors = [fits.error for fits in row.fits.values() if "NoTrainableWeightError" in fits.error]
        row.skipped = errors[0] if errors else ""
    return row


def _try(fits: Fits, start: str, own: Any, data: Any, own_seconds: float, params: dict[str, Any]) -> None:
    """Train, and add the results."""
    samples = {"new": data.new, "drifted": data.drifted}.get(start, data.train)
    test = data.drifted_test if start == "drifted" else data.test
    model = clone(own) if start == "fresh" else own
    trainer = OrtGradientOptimizer(model, warm_start=start != "fresh", random_state=0, **params)
    training, seconds = _fitted(trainer, samples)
    reference, _ = _score(own, test)
    score, error = (None, training.error) if training.error else _score(trainer, test)
    if error and reference is not None and _score(own, samples)[0] is not None:
        fits.error = fits.error or error  # not of samples that the own model cannot predict either
    fits.seconds.append(seconds)
    fits.own_seconds.append(own_seconds)
    if score is not None and reference is not None:
        fits.gains.append(score - reference)
        fits.kept.append(bool(trainer.start_kept_))


def _fitted(model: Any, samples: tuple) -> tuple[Any, float]:
    """Fit a model; return what was watched, and seconds of processor time."""
    since = time.process_time()
    training = fit_watched(model, *samples)
    return training, time.process_time() - since


def _score(model: Any, test: tuple) -> tuple[float | None, str]:
    """Return the score of a model by its own method, and the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = float(model.score(*test))
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
    return (found, "") if np.isfinite(found) else (None, "the score is not finite")
