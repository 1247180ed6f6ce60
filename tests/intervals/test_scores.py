"""Scores of intervals and quantiles by their definitions."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtIntervalRegressor
from ortlearn.intervals import IntervalScorer, coverage_score, crps_score, interval_score, pinball_score
from tests.intervals.test_interval_regressor import X_NEW, Y_NEW, X, Y

RNG = np.random.default_rng(0)
LABELS = RNG.normal(size=500)
ENDS = np.sort(RNG.normal(size=(500, 2)), axis=1)


def test_pinball_is_that_of_scikit_learn():
    levels = [0.2, 0.9]
    expected = np.mean([mean_pinball_loss(LABELS, ENDS[:, k], alpha=levels[k]) for k in range(2)])
    assert pinball_score(LABELS, ENDS, levels) == pytest.approx(expected)


def test_interval_score_is_a_sum_of_pinball_losses():
    """Interval score = 2 / alpha times the sum of the pinball losses of both ends (Bracher et al. 2021)."""
    alpha = 0.2
    expected = 4 / alpha * pinball_score(LABELS, ENDS, [alpha / 2, 1 - alpha / 2])
    assert interval_score(LABELS, ENDS, 0.8) == pytest.approx(expected)
    assert interval_score(LABELS, ENDS[:, :, None], 0.8) == pytest.approx(expected)


def test_coverage_counts_labels_at_the_ends():
    assert coverage_score([0.0, 1.0, 2.0], [[0, 1], [0, 1], [0, 1]]) == pytest.approx(2 / 3)


def test_crps_approaches_that_of_a_normal_distribution():
    """For y ~ N(0, 1): y (2 Phi(y) - 1) + 2 phi(y) - 1 / sqrt(pi) (Gneiting and Raftery 2007)."""
    levels = (np.arange(400) + 0.5) / 400
    quantiles = np.tile(norm.ppf(levels), (len(LABELS), 1))
    exact = LABELS * (2 * norm.cdf(LABELS) - 1) + 2 * norm.pdf(LABELS) - 1 / np.sqrt(np.pi)
    assert crps_score(LABELS, quantiles, levels) == pytest.approx(exact.mean(), rel=2e-3)


@pytest.mark.slow
def test_scorers():
    trained = OrtIntervalRegressor(Ridge(), random_state=0).fit(X, Y)
    intervals, quantiles = trained.predict_interval(X_NEW, 0.8)[1], trained.predict_quantiles(X_NEW)
    found = {
        name: IntervalScorer(name, 0.8)(trained, X_NEW, Y_NEW) for name in ("interval_score", "coverage")
    }
    assert found["interval_score"] == -interval_score(Y_NEW, intervals, 0.8)
    assert found["coverage"] == coverage_score(Y_NEW, intervals)
    assert IntervalScorer("crps")(trained, X_NEW, Y_NEW) == -crps_score(Y_NEW, quantiles, trained.levels_)
    assert IntervalScorer("pinball")(trained, X_NEW, Y_NEW) == -pinball_score(
        Y_NEW, quantiles, trained.levels_
    )
    search = GridSearchCV(
        OrtIntervalRegressor(Ridge(), random_state=0),
        {"estimator__alpha": [1.0, 1e4]},
        scoring=IntervalScorer(),
        cv=2,
    )
    assert search.fit(X[:150], Y[:150]).best_params_ == {"estimator__alpha": 1.0}


def test_scorers_take_pipelines_and_groups():
    """A pipeline that ends with an interval estimator, in a search that routes groups to fit and score."""
    groups = np.where(X[:, 1] > 0, "noisy", "quiet")
    settings = {"method": "residual", "calibration": 60, "group_min_size": 20, "random_state": 0}
    with config_context(enable_metadata_routing=True):
        inner = OrtIntervalRegressor(Ridge(), **settings).set_fit_request(groups=True)
        options = {"scoring": IntervalScorer("interval_score"), "cv": 2, "error_score": "raise"}
        search = GridSearchCV(make_pipeline(StandardScaler(), inner), {}, **options)
        search.fit(X, Y, groups=groups)
    trained = search.best_estimator_[-1]
    assert trained.groups_ == ["noisy", "quiet"]
    halves = [np.arange(200), np.arange(200, 400)]
    expected = []
    for train, test in (halves[::-1], halves):
        model = clone(search.best_estimator_)
        model = make_pipeline(*(step for _, step in model.steps[:-1])).fit(X[train]), model[-1]
        model[1].fit(model[0].transform(X[train]), Y[train], groups=groups[train])
        ends = model[1].predict_interval(model[0].transform(X[test]), groups=groups[test])[1]
        expected.append(-interval_score(Y[test], ends))
    assert search.best_score_ == pytest.approx(np.mean(expected))
    for name in ("pinball", "crps", "coverage"):
        other, by_group = (
            IntervalScorer(name)(search.best_estimator_, X, Y, g) for g in (groups[::-1], groups)
        )
        assert other != by_group
        with pytest.raises(ValueError, match="fit had groups, such as 'noisy': pass groups of X, too"):
            IntervalScorer(name)(search.best_estimator_, X, Y)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: IntervalScorer("width"), "score='width' must be"),
        (lambda: coverage_score(LABELS, ENDS[:3]), "have the shape"),
        (lambda: interval_score(LABELS, ENDS, 1.5), "coverage=1.5"),
        (lambda: pinball_score(LABELS, ENDS, [0.5]), "have the shape"),
        (lambda: coverage_score([np.nan], [[0, 1]]), "contain NaN"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
