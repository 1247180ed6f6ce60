"""Optima with features that are correlated, or have very different scales."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    MultiTaskLasso,
    Ridge,
    RidgeClassifier,
)

from ortlearn import OrtGradientOptimizer


def objective(fitted, X, Y):
    """Return the objective that the user guide of scikit-learn states."""
    coef = np.atleast_2d(fitted.coef_).astype(np.float64)
    squares = np.sum((Y.reshape(len(Y), -1) - X @ coef.T - np.ravel(fitted.intercept_)) ** 2)
    norms = np.linalg.norm(coef, axis=0).sum()  # absolute values, for one label
    ratio = getattr(fitted, "l1_ratio", 1.0)
    penalty = ratio * norms + (1 - ratio) / 2 * np.sum(coef**2)
    return squares / (2 * len(Y)) + fitted.alpha * penalty


@pytest.mark.parametrize("l1_ratio", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_nonnegative_coefficients(load, l1_ratio):
    X, y = load(return_X_y=True)
    model = ElasticNet(0.001, l1_ratio=l1_ratio, positive=True, max_iter=10**6, tol=1e-10)
    trained = OrtGradientOptimizer(model, random_state=0).fit(X, y).to_sklearn()
    assert objective(trained, X, y) < 1.001 * objective(model.fit(X, y), X, y)


@pytest.mark.filterwarnings("ignore:LearningRateLBFGS stopped after 100 iterations")
@pytest.mark.parametrize("alpha", [0.001, 0.1, 1.0])
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_norms_of_rows(load, alpha):
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(0)
    X = X * 10 ** rng.uniform(-3, 3, X.shape[1])
    Y = np.c_[y, (y - y.mean()) ** 2 + X @ (rng.normal(size=X.shape[1]) / X.std(axis=0))]
    model = MultiTaskLasso(alpha, max_iter=10**5, tol=1e-9)
    trained = OrtGradientOptimizer(model, random_state=0).fit(X, Y).to_sklearn()
    assert objective(trained, X, Y) < 1.02 * objective(model.fit(X, Y), X, Y)


@pytest.mark.parametrize(
    "model", [LinearRegression(), Ridge(1e-3), Ridge(0.1, fit_intercept=False)], ids=repr
)
def test_correlated_features(model):
    X, y = load_breast_cancer().data[:, 1:], load_breast_cancer().data[:, 0]  # correlations up to 0.998
    trained = OrtGradientOptimizer(model, random_state=0, dtype="float64").fit(X, y)
    expected = clone(model).fit(X, y).predict(X)
    assert np.abs(trained.predict(X) - expected).max() < 1e-4 * y.std() and trained.n_iter_ < 10


@pytest.mark.filterwarnings("ignore:LearningRateLBFGS stopped after 100 iterations")
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=0.01, max_iter=10**4, tol=1e-8),
        RidgeClassifier(10.0),
    ],
    ids=repr,
)
def test_classes_of_correlated_features(model):
    X, y = load_breast_cancer(return_X_y=True)
    trained = OrtGradientOptimizer(model, random_state=0, dtype="float64").fit(X, y)
    expected = clone(model).fit(X, y).decision_function(X)
    assert np.abs(trained.decision_function(X) - expected).max() < 0.01 * expected.std()


def test_equal_features():
    X, y = load_diabetes(return_X_y=True)
    X = np.c_[X, X, np.ones(len(X))]
    trained = OrtGradientOptimizer(Ridge(), random_state=0).fit(X, y)
    np.testing.assert_allclose(trained.predict(X), Ridge().fit(X, y).predict(X), atol=1e-3 * y.std())


def test_directions_without_samples_stay_as_they_are():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 200)), rng.normal(size=40)
    start = LinearRegression().fit(rng.normal(size=(400, 200)), rng.normal(size=400))
    trainer = OrtGradientOptimizer(start, learning_rate="LBFGS", warm_start=True, random_state=0)
    away = (trainer.fit(X, y).to_sklearn().coef_ - start.coef_) * X.std(axis=0)
    _, _, directions = np.linalg.svd((X - X.mean(axis=0)) / X.std(axis=0), full_matrices=True)
    assert np.linalg.norm(directions[40:] @ away) < 0.01 * np.linalg.norm(away)
