"""Pairs, scores and summary of the benchmark of default parameters."""

import numpy as np
import pytest

from benchmarks.first_hour import measurement, pairs, report


def test_pairs_are_distinct():
    assert len({pair.name for pair in pairs.PAIRS}) == len(pairs.PAIRS) >= 48
    assert len({pair.dataset for pair in pairs.PAIRS}) >= 10


def test_summary_counts_errors_as_misses():

    def row(fresh, warm, **details):
        sklearn = measurement.Training(score=0.9, seconds=1.0, gap=0.0)
        fresh = measurement.Training(score=fresh, seconds=3.0, **details)
        return measurement.Measured("a", "R2", sklearn, fresh, measurement.Training(score=warm, seconds=2.0))

    rows = [row(0.885, 0.91, gap=0.5), row(0.87, 0.89, gap=0.001), row(0.99, 0.5, error="ValueError: no")]
    found = report.summary(rows)
    assert report.TARGETS.keys() <= found.keys()
    assert found["fresh within 0.02 of scikit-learn"] == pytest.approx(1 / 3)
    assert found["warm not worse than its start by 0.02"] == pytest.approx(2 / 3)
    assert (found["errors of fresh"], found["errors of warm"]) == (1, 0)
    assert found["fresh within 1 % of the optimum"] == pytest.approx(1 / 3)
    assert found["median time of fresh in fits of scikit-learn"] == 3.0
    assert report.table(rows).row_count == 3


def test_scores_of_invalid_predictions():
    y = np.array([1.0, 2.0])
    assert measurement.score("D2 Poisson", y, np.array([-1.0, 2.0])) == -np.inf
    assert measurement.score("R2", y, np.array([np.nan, 2.0])) == -np.inf
    assert measurement.score("D2 pinball 0.8", y, y) == 1.0


def test_one_pair():
    pair = next(pair for pair in pairs.PAIRS if pair.name == "thousands scaled Ridge")
    (row,) = measurement.measure(pair, {"max_iter": 50, "learning_rate": "LBFGS", "learning_penalty": None})
    assert row.fresh.score == pytest.approx(row.sklearn.score, abs=0.01)
    assert abs(row.sklearn.gap) < 1e-8 and row.fresh.gap < 0.01
    assert row.fresh.rate == "LearningRateLBFGS()" and not row.fresh.error


def test_exceptions_are_recorded():
    (row,) = measurement.measure(pairs.Pair("few_samples", "raw", "Ridge"), {"max_iter": 0})
    assert "max_iter" in row.fresh.error and not row.sklearn.error
