"""Linear models with positive=True keep nonnegative coefficients and reach the optimum of scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LassoLars,
    LinearRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam, LearningRateLBFGS, LearningRateSGDNesterov
from ortlearn.penalties import ElasticPenalty, L1Penalty, L2Penalty
from ortlearn.trainable.explanation import explain

RNG = np.random.RandomState(0)
X = RNG.randn(120, 6)
#: Half of the true coefficients are negative.
Y = X @ [2.0, -1.0, 0.5, -2.0, 0.1, -0.1] + 0.1 * RNG.randn(120)
BOTH = np.stack([Y, -Y], axis=1)
CLASSES = np.digitize(Y, [-1.0, 1.0])

MODELS = {
    "least squares": (LinearRegression(positive=True), Y),
    "no intercept": (LinearRegression(positive=True, fit_intercept=False), Y),
    "two outputs": (LinearRegression(positive=True), BOTH),
    "ridge": (Ridge(positive=True), Y),
    "lasso": (Lasso(0.1, positive=True), Y),
    "elastic net": (ElasticNet(0.1, positive=True), Y),
    "elastic net by validation": (ElasticNetCV(positive=True, cv=2), Y),
    "lasso by validation": (LassoCV(positive=True, cv=2), Y),
    "least angles": (LassoLars(0.01, positive=True), Y),
    "classes": (RidgeClassifier(positive=True), CLASSES),
    "two classes": (RidgeClassifier(positive=True), CLASSES > 0),
    "step": (make_pipeline(StandardScaler(), Ridge(positive=True)), Y),
    "member": (MultiOutputRegressor(Lasso(0.1, positive=True)), BOTH),
    "vote": (VotingRegressor([("a", Ridge(positive=True)), ("b", Lasso(positive=True))]), Y),
    "transformed": (TransformedTargetRegressor(Ridge(positive=True), transformer=StandardScaler()), Y),
}


def coefficients(trained):
    """Return the trained coefficients by name."""
    return {
        name: trained.trained_coef_[name]
        for name, origin in trained.weights_to_train_.items()
        if origin.endswith("coef_")
    }


@pytest.mark.parametrize("warm", [False, True], ids=["fresh", "warm"])
@pytest.mark.parametrize("name", MODELS)
def test_coefficients_stay_nonnegative(name, warm, run_onnx):
    model, y = MODELS[name]
    model = clone(model).fit(X, y) if warm else clone(model)
    trained = OrtGradientOptimizer(model, learning_rate=0.2, max_iter=3, warm_start=warm, random_state=0)
    trained.fit(X, y)
    found = coefficients(trained)
    assert found and all((array >= 0).all() for array in found.values())
    assert any((array > 0).any() for array in found.values())
    written = trained.to_sklearn()
    if hasattr(written, "coef_"):
        assert (written.coef_ >= 0).all()
    expected, got = written.predict(X), trained.predict(X)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize(
    "rate",
    [0.2, LearningRateSGDNesterov(0.05), LearningRateAdam(0.05), LearningRateLBFGS()],
    ids=["sgd", "nesterov", "adam", "lbfgs"],
)
def test_the_optimum_of_nnls(rate, kind):
    expected, _ = nnls(X, Y)
    trained = kind(
        LinearRegression(positive=True),
        weights_to_train="coef",
        learning_rate=rate,
        max_iter=400,
        batch_size=120,
        dtype="float64",
        warm_start=True,
        random_state=0,
    )
    start = LinearRegression(positive=True).fit(X, Y)
    start.intercept_ = 0.0
    start.coef_ = np.array([0.0, 0.3, 0.0, 0.7, 0.0, 0.2])
    trained.set_params(estimator=start).fit(X, Y)
    found = trained.trained_coef_["coef"].ravel()
    np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_array_equal(found == 0, expected == 0)


@pytest.mark.parametrize(
    "model, penalty",
    [
        (LinearRegression(positive=True), None),
        (Ridge(12.0, positive=True, tol=1e-10), L2Penalty(0.05)),
    ],
    ids=["least squares", "ridge"],
)
def test_solver_finds_the_solution_of_scikit_learn(model, penalty):
    trained = OrtGradientOptimizer(
        clone(model),
        learning_rate=LearningRateLBFGS(gtol=1e-8),
        learning_penalty=penalty,
        max_iter=300,
        dtype="float64",
        random_state=0,
    ).fit(X, Y)
    np.testing.assert_allclose(trained.predict(X), model.fit(X, Y).predict(X), atol=1e-4)


@pytest.mark.parametrize(
    "model, penalty",
    [
        (Lasso(0.3, positive=True), L1Penalty(0.3)),
        (ElasticNet(0.3, l1_ratio=0.5, positive=True), ElasticPenalty(0.15, 0.075)),
    ],
    ids=["lasso", "elastic net"],
)
def test_the_bound_with_a_proximal_step(model, penalty):
    trained = OrtGradientOptimizer(
        clone(model),
        learning_rate=0.2,
        learning_penalty=penalty,
        max_iter=200,
        batch_size=len(X),
        random_state=0,
    ).fit(X, Y)
    model.fit(X, Y)
    np.testing.assert_allclose(trained.to_sklearn().coef_, model.coef_, atol=1e-3)
    assert (model.coef_ == 0).sum() == (trained.to_sklearn().coef_ == 0).sum() >= 3


def test_coefficients_of_zero_grow_again():
    model = Lasso(100.0, positive=True).fit(X, Y)
    assert not model.coef_.any()
    trained = OrtGradientOptimizer(model, warm_start=True, learning_rate=0.1, max_iter=20, random_state=0)
    coef = trained.fit(X, X @ [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]).to_sklearn().coef_
    np.testing.assert_allclose(coef, [1, 2, 3, 0, 0, 0], atol=0.05)


def test_the_start_of_a_warm_training_is_the_fitted_model():
    model = Ridge(positive=True).fit(X, Y)
    trained = OrtGradientOptimizer(model, warm_start=True, learning_rate=1e-30, max_iter=1).fit(X, Y)
    found = trained.trained_coef_["coef"].ravel()  # zeros may have moved by the rate times the gradient
    np.testing.assert_allclose(found, model.coef_.astype(np.float32), rtol=0, atol=1e-28)


def test_partial_fit_and_averages_keep_the_bound():
    trained = OrtGradientOptimizer(Ridge(positive=True), learning_rate=0.2, average=True, random_state=0)
    for start in range(0, 120, 30):
        trained.partial_fit(X[start : start + 30], Y[start : start + 30])
        assert (trained.trained_coef_["coef"] >= 0).all()


def test_explain_names_constraints():
    (row,) = (r for r in explain(Ridge(positive=True).fit(X, Y)).rows if r.attribute == "coef_")
    assert row.trainable and row.reason == "kept at 0 or above"
    assert not any(row.reason for row in explain(Ridge().fit(X, Y)).rows)
