"""Dummy estimators: trained constants, and random strategies that are refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.testing import check_model, check_objective
from ortlearn.trainable.conversion import to_trainable

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
Y = 2 + X @ [1.0, -2.0, 0.5]
THREE = np.digitize(Y, [1, 3])
SEVERAL = np.column_stack([Y, X[:, 0] + 1])
LABELS = np.column_stack([np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)], THREE.astype(str)])

REGRESSORS = [
    DummyRegressor(),
    DummyRegressor(strategy="median"),
    DummyRegressor(strategy="quantile", quantile=0.8),
    DummyRegressor(strategy="constant", constant=3),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: model.strategy)
def test_regressors(model):
    check_model(model.fit(X, Y), X)


def test_regressors_of_several_outputs():
    check_model(DummyRegressor().fit(X, SEVERAL), X)
    check_model(DummyRegressor(strategy="constant", constant=[1.0, 2.0]).fit(X, SEVERAL), X)


@pytest.mark.parametrize("strategy", ["prior", "most_frequent"])
@pytest.mark.parametrize("y", [THREE, LABELS[:, 0], LABELS], ids=["classes", "text", "outputs"])
def test_classifiers(strategy, y):
    check_model(DummyClassifier(strategy=strategy).fit(X, y), X)


@pytest.mark.parametrize("model", [*REGRESSORS[:3], DummyClassifier()], ids=str)
def test_objectives(model):
    y = THREE if isinstance(model, DummyClassifier) else Y
    check_objective(model.fit(X, y), X, y)


def test_training_finds_the_constant_that_minimises_the_loss():
    start = DummyRegressor(strategy="constant", constant=0.0).fit(X, Y)
    options = {"warm_start": True, "learning_rate": "LBFGS", "max_iter": 300}
    for loss, expected in (("squared_error", Y.mean()), ("absolute_error", np.median(Y))):
        model = OrtGradientOptimizer(start, learning_loss=loss, **options).fit(X, Y)
        assert model.to_sklearn().constant_[0, 0] == pytest.approx(expected, abs=0.05)
    few = np.arange(60) < 6
    shares = DummyClassifier().fit(X[few], np.arange(6) % 3)
    model = OrtGradientOptimizer(shares, **options).fit(X, THREE)
    np.testing.assert_allclose(model.to_sklearn().class_prior_, np.bincount(THREE) / 60, atol=0.02)


def test_constant_classes_are_trained_only_if_selected():
    model = DummyClassifier(strategy="constant", constant=2).fit(X, THREE)
    with pytest.raises(NoTrainableWeightError, match="predictions do not depend on it"):
        to_trainable(model)
    ours = OrtGradientOptimizer(model, weights_to_train="class_prior_", warm_start=True, max_iter=1).fit(
        X, THREE
    )
    assert (ours.predict(X) == 2).all() and (ours.predict_proba(X) == [0, 0, 1]).all()


@pytest.mark.parametrize("strategy", ["stratified", "uniform"])
def test_random_strategies(strategy):
    model = DummyClassifier(strategy=strategy).fit(X, THREE)
    with pytest.raises(ConversionError, match=f"strategy='{strategy}' is random"):
        OrtGradientOptimizer(model, warm_start=True).fit(X, THREE)


def test_outputs_of_one_class_are_refused():
    with pytest.raises(ConversionError, match="remove this output"):
        to_trainable(DummyClassifier().fit(X, np.column_stack([THREE, np.zeros(60)])))


def test_samples_of_any_kind():
    words = pd.DataFrame({"word": np.array(["a", "b"])[THREE % 2], "n": np.arange(60)})
    for samples in (words, words[["n"]], np.where(X > 1, np.nan, X)):
        fitted = DummyRegressor().fit(samples, Y)
        ours = OrtGradientOptimizer(fitted, warm_start=True, max_iter=1, learning_rate=1e-30).fit(samples, Y)
        np.testing.assert_allclose(ours.predict(samples), Y.mean(), rtol=1e-6)
