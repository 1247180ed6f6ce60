"""learning_rate="LBFGS" reaches scikit-learn's objective for all losses of its linear models."""

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)

from ortlearn.losses import HuberLoss, QuantileLoss, TweedieLoss
from ortlearn.penalties import L2Penalty
from tests.pairwise import pairwise

ALPHA = 0.1
EXACT = {"tol": 1e-9, "max_iter": 2000}


def squares(z, y):
    return (z - y) ** 2 / 2


def huber(z, y, delta):
    r = np.abs(z - y)
    return np.where(r <= delta, r**2 / 2, delta * (r - delta / 2))


def pinball(z, y, q):
    return np.maximum(q * (y - z), (q - 1) * (y - z))


def poisson(z, y):
    return xlogy(y, y) - y * z - y + np.exp(z)


def gamma(z, y):
    return z - np.log(y) + y * np.exp(-z) - 1


def tweedie(z, y, p):
    constant = y ** (2 - p) / ((1 - p) * (2 - p))
    return constant - y * np.exp((1 - p) * z) / (1 - p) + np.exp((2 - p) * z) / (2 - p)


def binary(z, y):
    return np.logaddexp(0, z) - y * z


def quantile_regressor(q):
    return QuantileRegressor(quantile=q, alpha=0.0, solver="highs")


#: By name: scikit-learn's model for a penalty on the mean loss, the loss here, the loss of a sample by the
#: fitted model, the strength of the penalty, and the labels.
CASES = {
    "ridge": (lambda n: Ridge(alpha=ALPHA * n), lambda t: "squared_error", lambda t: squares, ALPHA / 2),
    "huber": (
        lambda n: HuberRegressor(alpha=ALPHA * n, **EXACT),
        lambda t: HuberLoss(delta=t.epsilon * t.scale_),
        lambda t: lambda z, y: huber(z, y, t.epsilon * t.scale_),
        lambda t: ALPHA * t.scale_ / 2,
    ),
    "median": (
        lambda n: quantile_regressor(0.5),
        lambda t: QuantileLoss(quantile=0.5),
        lambda t: lambda z, y: pinball(z, y, 0.5),
        0.0,
    ),
    "quantile": (
        lambda n: quantile_regressor(0.9),
        lambda t: QuantileLoss(quantile=0.9),
        lambda t: lambda z, y: pinball(z, y, 0.9),
        0.0,
    ),
    "poisson": (
        lambda n: PoissonRegressor(alpha=ALPHA, **EXACT),
        lambda t: "poisson",
        lambda t: poisson,
        ALPHA / 2,
    ),
    "gamma": (lambda n: GammaRegressor(alpha=ALPHA, **EXACT), lambda t: "gamma", lambda t: gamma, ALPHA / 2),
    "tweedie": (
        lambda n: TweedieRegressor(power=1.5, link="log", alpha=ALPHA, **EXACT),
        lambda t: TweedieLoss(power=1.5),
        lambda t: lambda z, y: tweedie(z, y, 1.5),
        ALPHA / 2,
    ),
    "logistic": (
        lambda n: LogisticRegression(C=1 / (ALPHA * n), **EXACT),
        lambda t: "log_loss",
        lambda t: binary,
        ALPHA / 2,
    ),
}


@pytest.mark.sweep(11)
@pairwise(
    indirect=["optimizer"],
    name=CASES,
    optimizer=["one_graph", "two_calls"],
    weighted=[False, True],
    dtype=["float32", "float64"],
)
def test_objective_equals_scikit_learns(name, weighted, dtype, optimizer, request):
    make, our_loss, loss_of, strength = CASES[name]
    X, y = request.getfixturevalue("cancer" if name == "logistic" else "diabetes")
    y = y if name == "logistic" else y / 100
    weights = np.random.RandomState(0).uniform(0.1, 3, len(X)) if weighted else np.ones(len(X))
    theirs = make(weights.sum()).fit(X, y, sample_weight=weights)
    loss, l2 = loss_of(theirs), strength(theirs) if callable(strength) else strength
    # Losses with a log link take the score of a linear model.
    source = LogisticRegression() if name == "logistic" else LinearRegression()
    ours = optimizer(
        source,
        learning_rate="LBFGS",
        learning_loss=our_loss(theirs),
        learning_penalty=L2Penalty(l2) if l2 else None,
        max_iter=500,
        random_state=0,
        dtype=dtype,
    ).fit(X, y, sample_weight=weights)

    def objective(coef, intercept):
        z = X @ np.ravel(coef) + np.ravel(intercept)
        return np.average(loss(z, y), weights=weights) + l2 * (np.ravel(coef) ** 2).sum()

    best = objective(theirs.coef_, theirs.intercept_)
    got = {key: array.astype(np.float64) for key, array in ours.trained_coef_.items()}
    assert objective(got["coef"], got["intercept"]) <= best + 1e-3 * abs(best)
    assert ours.n_iter_ == len(ours.train_losses_) < 500
