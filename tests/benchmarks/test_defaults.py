"""Trainings with default parameters: a sample, and what the check detects; ``make coverage`` trains all."""

import numpy as np
import pytest

from benchmarks.model_zoo.cases import catalogue
from benchmarks.model_zoo.data import load
from benchmarks.model_zoo.defaults import trains_with_defaults
from benchmarks.model_zoo.measurement import Measurement
from benchmarks.model_zoo.verdict import silently_wrong
from ortlearn import OrtGradientOptimizer

CASES = catalogue()


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "name",
    [
        "KMeans:rows",
        "MultiTaskElasticNet:outputs",
        "PoissonRegressor:regression",
        "StackingClassifier:binary",
        "TargetEncoder:categories",
    ],
)
def test_estimators_train_with_defaults(name):
    fact = Measurement(CASES[name]).defaults()
    assert fact["ok"], fact
    assert len(fact["scores"]) == 4


def test_every_estimator_has_defaults():
    assert all((case.make_default is not None) == case.main for case in CASES.values())
    assert Measurement(CASES["Ridge:outputs"]).defaults()["ok"] is None
    assert Measurement(CASES["SelectKBest:rows"]).defaults()["ok"] is None


class WrongPrediction(OrtGradientOptimizer):
    """An estimator with a wrong prediction."""

    def predict(self, X):
        return super().predict(X) + 1


class WrongScore(OrtGradientOptimizer):
    """An estimator with a wrong score."""

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight) + 1


@pytest.mark.parametrize("method", ["predict", "score"])
def test_a_method_that_differs_is_found(method):
    case, (X, y) = CASES["LinearRegression:regression"], load("regression")
    fitted = case.make_default().fit(X, y)
    kinds = {"predict": (WrongPrediction, WrongPrediction), "score": (WrongScore, WrongScore)}[method]
    fact = trains_with_defaults(case.make_default(), fitted, X, np.asarray(y), kinds)
    assert not fact["ok"] and f"{method}" in fact["reason"]
    assert silently_wrong({"defaults": fact}) == ["defaults"]
