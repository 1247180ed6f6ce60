"""Default fits from fresh weights are as good as scikit-learn's, also where parts depend on each other."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer

DIABETES = load_diabetes(return_X_y=True)
X, y = load_breast_cancer(return_X_y=True)
CANCER = StandardScaler().fit_transform(X[:, :6]), y
REGRESSOR = GradientBoostingRegressor(n_estimators=10, init=LinearRegression(), random_state=0)


@pytest.mark.parametrize(
    ("model", "samples"),
    [
        (REGRESSOR, DIABETES),
        (clone(REGRESSOR).set_params(loss="huber"), DIABETES),
        (TransformedTargetRegressor(clone(REGRESSOR)), DIABETES),
        (GradientBoostingClassifier(n_estimators=10, init=LogisticRegression(), random_state=0), CANCER),
    ],
    ids=["squared", "huber", "transformed", "classifier"],
)
def test_boosting_keeps_the_fitted_model_that_its_trees_correct(model, samples):
    X, y = samples
    own, fitted = clone(model).fit(X[:300], y[:300]), OrtGradientOptimizer(model, random_state=0)
    fitted.fit(X[:300], y[:300])
    assert fitted.score(X[300:], y[300:]) > own.score(X[300:], y[300:]) - 0.01


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(5, bootstrap=False, random_state=0),
        GradientBoostingClassifier(n_estimators=10, random_state=0),
        HistGradientBoostingClassifier(max_iter=10),
    ],
)
@pytest.mark.parametrize("by_parts", [False, True])
def test_classes_without_samples_are_not_learnt_from_other_samples(model, by_parts):
    X, y = make_classification(200, 5, n_informative=4, n_redundant=0, random_state=6)
    trainer, options = OrtGradientOptimizer(model, random_state=0), {"classes": [0, 1, 2]}
    by_parts = by_parts and not isinstance(model, DecisionTreeClassifier)  # which has no partial_fit
    trainer.partial_fit(X, y + 1, **options) if by_parts else trainer.fit(X, y + 1, **options)
    assert trainer.predict_proba(X)[:, 0].max() < 0.01


@pytest.mark.parametrize("scale", [1e2, 1e7])
def test_outputs_of_different_scales(scale):
    X, y = DIABETES
    Y = np.column_stack([scale * y, 100 * X[:, 2] + y / 10])
    expected = LinearRegression().fit(X, Y).predict(X)
    trainer = OrtGradientOptimizer(LinearRegression(), random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.fit(X, Y)
    is_near = np.abs(trainer.predict(X) - expected)[:, 1].max() < 0.01 * expected[:, 1].std()
    assert is_near
    assert any("Standardise them" in str(own.message) for own in caught) == (scale > 1e3)


def test_many_classes_are_no_warning():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(200), 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        OrtGradientOptimizer(LogisticRegression(), max_iter=3).fit(rng.normal(size=(2000, 8)), y)
