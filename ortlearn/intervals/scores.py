"""Scores of intervals and quantiles, and scorers for searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from ..preprocessing.estimator_checks import last_step
from ..preprocessing.initial_fit import after_steps
from .conformal import checked_coverage, checked_levels

__all__ = [
    "IntervalScorer",
    "coverage_score",
    "crps_score",
    "interval_score",
    "pinball_score",
]


def _checked(y_true: Any, values: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of shape (n, 1) and values of shape (n, count), without NaN."""
    y, found = np.asarray(y_true, np.float64).reshape(-1, 1), np.asarray(values, np.float64)
    found = found[:, :, 0] if found.ndim == 3 and found.shape[2] == 1 else found
    if found.shape != (len(y), count):
        raise ValueError(f"Values have the shape {np.shape(values)}, not ({len(y)}, {count}).")
    if np.isnan(y).any() or np.isnan(found).any():
        raise ValueError("Labels or predictions contain NaN.")
    return y, found


def coverage_score(y_true: Any, intervals: Any) -> float:
    """Return the share of labels inside of their intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    intervals : array-like of shape (n_samples, 2) or (n_samples, 2, 1)
        Lower and upper ends, as ``predict_interval`` returns them.

    Returns
    -------
    float
        Coverage.

    Examples
    --------
    >>> from ortlearn.intervals import coverage_score
    >>> coverage_score([1.0, 2.0], [[0.0, 1.0], [0.0, 1.0]])
    0.5
    """
    y, ends = _checked(y_true, intervals, 2)
    return float(np.mean((ends[:, :1] <= y) & (y <= ends[:, 1:])))


def interval_score(y_true: Any, intervals: Any, coverage: float = 0.9) -> float:
    """Return the mean interval score of Winkler (1972): the width plus ``2 / (1 - coverage)`` times the miss.

    Its expectation is smallest for the interval between the quantiles of levels ``(1 - coverage) / 2`` and
    ``(1 + coverage) / 2`` (Gneiting and Raftery 2007).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    intervals : array-like of shape (n_samples, 2) or (n_samples, 2, 1)
        Lower and upper ends.
    coverage : float, default=0.9
        Coverage of the intervals.

    Returns
    -------
    float
        Score, the smaller the better.

    Examples
    --------
    >>> from ortlearn.intervals import interval_score
    >>> interval_score([1.0, 2.0], [[0.0, 1.0], [0.0, 1.0]], coverage=0.5)
    3.0
    """
    y, ends = _checked(y_true, intervals, 2)
    miss = np.maximum(ends[:, :1] - y, 0) + np.maximum(y - ends[:, 1:], 0)
    return float(np.mean(np.diff(ends, axis=1) + 2 / (1 - checked_coverage(coverage)) * miss))


def pinball_score(y_true: Any, quantiles: Any, levels: Any) -> float:
    """Return the mean pinball loss of quantiles, over samples and levels.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    quantiles : array-like of shape (n_samples, n_levels)
        Quantiles, as ``predict_quantiles`` returns them.
    levels : sequence of float
        Their levels.

    Returns
    -------
    float
        Loss, the smaller the better.

    Examples
    --------
    >>> from ortlearn.intervals import pinball_score
    >>> pinball_score([1.0, 3.0], [[2.0], [2.0]], levels=[0.25])
    0.5
    """
    return float(np.mean(_pinball(y_true, quantiles, levels)))


def crps_score(y_true: Any, quantiles: Any, levels: Any) -> float:
    """Return the continuous ranked probability score of the distribution that quantiles describe.

    It is twice the integral of the pinball loss over the levels, by the midpoints between them.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    quantiles : array-like of shape (n_samples, n_levels)
        Quantiles; the more levels, the more exact the score.
    levels : sequence of float
        Their levels.

    Returns
    -------
    float
        Score, the smaller the better.

    Examples
    --------
    >>> from ortlearn.intervals import crps_score
    >>> crps_score([1.0, 3.0], [[2.0], [2.0]], levels=[0.5])
    1.0
    """
    known = checked_levels(levels)
    borders = np.concatenate([[0.0], (known[1:] + known[:-1]) / 2, [1.0]])
    return float(2 * np.mean(_pinball(y_true, quantiles, levels) @ np.diff(borders)))


def _pinball(y_true: Any, quantiles: Any, levels: Any) -> np.ndarray:
    """Return pinball losses of shape (n, n_levels)."""
    known = checked_levels(levels)
    y, found = _checked(y_true, quantiles, len(known))
    return np.maximum(known * (y - found), (known - 1) * (y - found))


class IntervalScorer:
    """Scorer of interval estimators and pipelines that end with one, for searches and cross-validation.

    With scikit-learn's metadata routing, groups that are passed to the search select the intervals.

    Parameters
    ----------
    score : {"interval_score", "pinball", "crps", "coverage"}, default="interval_score"
        Losses are negative, so that the largest value is the best one. ``"coverage"`` is the coverage itself.
    coverage : float, default=None
        Coverage of the intervals, that of the estimator by default.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> from ortlearn import OrtIntervalRegressor
    >>> from ortlearn.intervals import IntervalScorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + rng.normal(size=300)
    >>> model = OrtIntervalRegressor(Ridge(), random_state=0)
    >>> bool(cross_val_score(model, X, y, scoring=IntervalScorer("coverage"), cv=3).mean() > 0.8)
    True
    """

    def __init__(self, score: str = "interval_score", coverage: float | None = None) -> None:
        if score not in ("interval_score", "pinball", "crps", "coverage"):
            raise ValueError(f"score={score!r} must be 'interval_score', 'pinball', 'crps' or 'coverage'.")
        self.score = score
        self.coverage = coverage

    def get_metadata_routing(self) -> MetadataRequest:
        """Return a request for groups, which scikit-learn routes to the scorer as it does to ``fit``.

        Returns
        -------
        MetadataRequest
            Request.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        return request

    def __call__(self, estimator: Any, X: Any, y: Any, groups: Any = None) -> float:
        """Return the score of a fitted estimator, or of a pipeline that ends with one, on samples."""
        X, estimator = after_steps(estimator, X), last_step(estimator)
        groups = groups if estimator.groups_ else None
        if self.score in ("pinball", "crps"):
            function = pinball_score if self.score == "pinball" else crps_score
            return -function(y, estimator.predict_quantiles(X, groups=groups), estimator.levels_)
        intervals = estimator.predict_interval(X, self.coverage, groups)[1]
        if self.score == "coverage":
            return coverage_score(y, intervals)
        return -interval_score(y, intervals, self.coverage or estimator.coverage)

    def __repr__(self) -> str:
        return f"IntervalScorer({self.score!r}, coverage={self.coverage!r})"
