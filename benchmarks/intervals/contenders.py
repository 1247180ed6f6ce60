"""Interval methods of ortlearn and of other packages, fitted on the same samples.

A contender returns a function of calibration and test samples to intervals of shape (n, 2). Quantiles of
packages without calibration are calibrated as Romano et al. (2019) do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import QuantileRegressor, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtIntervalRegressor
from ortlearn.intervals.conformal import conformal_quantile

COVERAGE = 0.9
LEVELS = (0.05, 0.95, 0.5)
Intervals = Callable[[np.ndarray, np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, int], Intervals]

RIDGE = make_pipeline(StandardScaler(), Ridge())


def network(seed: int) -> Any:
    """Return a network."""
    return make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(32,), max_iter=300, random_state=seed)
    )


def own(estimator: Callable[[int], Any], **parameters: Any) -> Fit:
    """Return a method of ortlearn; calibration samples are drawn from what it says about the pool."""

    def fit(X, y, X_pool, y_pool, n_cal, seed):
        model = OrtIntervalRegressor(estimator(seed), coverage=COVERAGE, random_state=seed, **parameters)
        if parameters.get("method") == "cv+":
            ends = model.fit(X, y).predict_interval(X_pool)[1][:, :, 0]
            return lambda cal, test: ends[test]
        cal = np.arange(n_cal)
        model.fit(X, y, X_cal=X_pool[cal], y_cal=y_pool[cal])
        fitted = model._fitted
        said = fitted.measured(X_pool, y_pool, np.zeros(len(y_pool), int), ())
        weights = fitted.ends(COVERAGE)

        def intervals(cal, test):
            width = conformal_quantile(said.scores(weights)[cal], COVERAGE) * said.scale[test]
            return with_middle(said.values[test] @ weights + width * [-1.0, 1.0])

        check(model, X_pool, cal, intervals(cal, np.arange(len(y_pool))))
        return intervals

    return fit


def check(model: OrtIntervalRegressor, X: np.ndarray, cal: np.ndarray, ends: np.ndarray) -> None:
    """Raise an error unless the estimator predicts the same intervals for the first calibration samples."""
    found = model.predict_interval(X)[1][:, :, 0]
    scale = np.abs(found).max()
    if not np.allclose(found, ends, atol=1e-4 * scale, rtol=1e-4):
        raise AssertionError("The estimator predicts other intervals than the measurement.")


def with_middle(ends: np.ndarray) -> np.ndarray:
    """Return ends that have crossed as their middle."""
    middle = ends.mean(axis=1)
    crossed = ends[:, 0] > ends[:, 1]
    return np.where(crossed[:, None], middle[:, None], ends)


def conformalized(quantiles: Callable[..., np.ndarray]) -> Fit:
    """Return the calibration of quantiles of another package."""

    def fit(X, y, X_pool, y_pool, n_cal, seed):
        ends = np.sort(quantiles(X, y, X_pool, seed), axis=1)

        def intervals(cal, test):
            scores = np.maximum(ends[:, 0] - y_pool, y_pool - ends[:, 1])[cal]
            width = conformal_quantile(scores, COVERAGE)
            return with_middle(ends[test] + np.array([-width, width]))

        return intervals

    return fit


def quantile_forest(X, y, X_pool, seed):
    """Return quantiles of the package quantile-forest."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(n_estimators=100, random_state=seed)
    return model.fit(X, y).predict(X_pool, quantiles=[0.05, 0.95])


def per_level(make: Callable[[float, int], Any]) -> Callable[..., np.ndarray]:
    """Return quantiles of one model per level."""

    def quantiles(X, y, X_pool, seed):
        return np.stack([make(level, seed).fit(X, y).predict(X_pool) for level in LEVELS[:2]], axis=1)

    return quantiles


def gradient_boosting(level: float, seed: int) -> Any:
    """Return scikit-learn's boosting of a quantile."""
    return GradientBoostingRegressor(loss="quantile", alpha=level, random_state=seed)


def lightgbm(level: float, seed: int) -> Any:
    """Return LightGBM's boosting of a quantile."""
    from lightgbm import LGBMRegressor

    return LGBMRegressor(objective="quantile", alpha=level, random_state=seed, verbose=-1, n_jobs=1)


def mapie_split(estimator: Callable[[int], Any]) -> Fit:
    """Return MAPIE's absolute residuals."""

    def fit(X, y, X_pool, y_pool, n_cal, seed):
        from mapie.regression import SplitConformalRegressor

        fitted = clone(estimator(seed)).fit(X, y)

        def intervals(cal, test):
            model = SplitConformalRegressor(fitted, confidence_level=COVERAGE, prefit=True)
            return model.conformalize(X_pool[cal], y_pool[cal]).predict_interval(X_pool[test])[1][:, :, 0]

        return intervals

    return fit


def mapie_quantiles(make: Callable[[float, int], Any]) -> Fit:
    """Return MAPIE's conformalized quantile regression."""

    def fit(X, y, X_pool, y_pool, n_cal, seed):
        from mapie.regression import ConformalizedQuantileRegressor

        fitted = [make(level, seed).fit(X, y) for level in LEVELS]

        def intervals(cal, test):
            model = ConformalizedQuantileRegressor(fitted, confidence_level=COVERAGE, prefit=True)
            model.conformalize(X_pool[cal], y_pool[cal])
            return model.predict_interval(X_pool[test], symmetric_correction=True)[1][:, :, 0]

        return intervals

    return fit


def crepes(estimator: Callable[[int], Any]) -> Fit:
    """Return residuals of crepes, normalised by those of the nearest training samples."""

    def fit(X, y, X_pool, y_pool, n_cal, seed):
        from crepes import ConformalRegressor
        from crepes.extras import DifficultyEstimator

        fitted = clone(estimator(seed)).fit(X, y)
        scaler = StandardScaler().fit(X)
        residuals = y - fitted.predict(X)
        difficulty = DifficultyEstimator().fit(X=scaler.transform(X), residuals=residuals, scaler=True)
        weights, predicted = difficulty.apply(scaler.transform(X_pool)), fitted.predict(X_pool)

        def intervals(cal, test):
            model = ConformalRegressor().fit(residuals=(y_pool - predicted)[cal], sigmas=weights[cal])
            return model.predict_int(predicted[test], sigmas=weights[test], confidence=COVERAGE)

        return intervals

    return fit


def linear_quantile(level: float, seed: int) -> Any:
    """Return scikit-learn's linear quantile regression."""
    return make_pipeline(StandardScaler(), QuantileRegressor(quantile=level, alpha=0.0))


OURS: dict[str, dict[str, Fit]] = {
    "linear": {
        "cqr": own(lambda seed: RIDGE),
        "residual": own(lambda seed: RIDGE, method="residual"),
        "residual, normalised": own(lambda seed: RIDGE, method="residual", normalize=True),
        "laplace": own(lambda seed: RIDGE, method="laplace"),
        "cv+": own(lambda seed: RIDGE, method="cv+"),
    },
    "network": {
        "cqr": own(network),
        "residual": own(network, method="residual"),
        "ensemble": own(network, method="ensemble", n_members=3),
    },
    "trees": {
        "cqr, forest": own(lambda seed: RandomForestRegressor(100, random_state=seed)),
        "cqr, boosting": own(lambda seed: GradientBoostingRegressor(random_state=seed)),
        "cqr, histogram boosting": own(lambda seed: HistGradientBoostingRegressor(random_state=seed)),
    },
}
PEERS: dict[str, dict[str, Fit]] = {
    "linear": {
        "MAPIE, quantiles": mapie_quantiles(linear_quantile),
        "MAPIE, residuals": mapie_split(lambda seed: RIDGE),
        "crepes, normalised": crepes(lambda seed: RIDGE),
    },
    "network": {
        "MAPIE, residuals": mapie_split(network),
        "crepes, normalised": crepes(network),
    },
    "trees": {
        "quantile-forest": conformalized(quantile_forest),
        "GradientBoosting": conformalized(per_level(gradient_boosting)),
        "LightGBM": conformalized(per_level(lightgbm)),
        "MAPIE, GradientBoosting": mapie_quantiles(gradient_boosting),
        "crepes, forest": crepes(lambda seed: RandomForestRegressor(100, random_state=seed)),
    },
}


def fitted(fit: Fit, *arguments: Any) -> Intervals:
    """Fit a contender without the warnings of its package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*arguments)
