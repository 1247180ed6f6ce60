"""Scores and losses required on bundled data sets with fixed seeds."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import L2Penalty

RETRAINED = {
    "ridge": ("diabetes", Ridge(), LearningRateSGD(eta0=0.01)),
    "mlp_regressor": (
        "diabetes",
        MLPRegressor(hidden_layer_sizes=(20,), max_iter=40, random_state=0),
        LearningRateSGD(eta0=1e-4),
    ),
    "logistic_regression": ("cancer", LogisticRegression(), LearningRateSGD(eta0=0.05)),
    "mlp_classifier": (
        "digits",
        MLPClassifier(hidden_layer_sizes=(32,), max_iter=10, random_state=0),
        LearningRateAdam(eta0=0.001),
    ),
    "pipeline": (
        "wine",
        make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(16,), max_iter=60, random_state=0)),
        LearningRateSGDNesterov(eta0=0.01),
    ),
}


@pytest.mark.sweep(5)
@pytest.mark.parametrize("name", list(RETRAINED))
@pytest.mark.parametrize("seed", [0, 1])
def test_retraining_does_not_increase_the_loss(name, seed, optimizer, fit_quietly, request):
    data, model, rate = RETRAINED[name]
    X, y = request.getfixturevalue(data)
    model = fit_quietly(model, X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    still = LearningRateSGD(eta0=1e-30)
    settings = {"warm_start": True, "batch_size": 10, "random_state": seed}
    before = optimizer(model, learning_rate=still, max_iter=1, **settings).fit(X, y)
    after = optimizer(model, learning_rate=rate, max_iter=15, **settings).fit(X, y)
    np.testing.assert_allclose(before.score(X, y), model.score(X, y), atol=1e-5)
    assert after.losses(X, y).mean() <= before.losses(X, y).mean()
    assert len(after.train_losses_) == after.n_iter_ == 15


def test_ridge_like_regression_from_fresh_weights(optimizer, diabetes):
    X, y = diabetes
    expected = LinearRegression().fit(X, y).score(X, y)
    trained = optimizer(
        Ridge(),
        learning_rate=0.01,
        learning_penalty=L2Penalty(0.5 / len(X)),  # equals alpha=1 of Ridge
        max_iter=50,
        random_state=0,
    ).fit(X, y)
    assert abs(trained.score(X, y) - expected) < 0.02


def test_logistic_regression_from_fresh_weights(optimizer, cancer):
    X, y = cancer
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=42)
    trained = optimizer(LogisticRegression(), learning_rate=0.05, max_iter=30, random_state=0)
    assert trained.fit(X_train, y_train).score(X_test, y_test) >= 0.96


def test_digits_from_fresh_weights(optimizer, digits):
    X, y = digits
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    trained = optimizer(
        MLPClassifier(hidden_layer_sizes=(64,)),
        learning_rate=LearningRateSGDNesterov(eta0=0.05),
        batch_size=32,
        max_iter=25,
        random_state=0,
    ).fit(X_train, y_train)
    assert trained.score(X_test, y_test) >= 0.95
