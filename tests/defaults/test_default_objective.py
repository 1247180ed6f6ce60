"""Defaults use the loss, penalty and class weights of the model; convex models reach its optimum."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ObjectiveWarning
from ortlearn.models import objective_of
from ortlearn.trainable.explanation import explain

DIABETES = load_diabetes(return_X_y=True)
RAW = load_diabetes(return_X_y=True, scaled=False)
COUNTS = (DIABETES[0], np.round(DIABETES[1] / 10))
CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
TIGHT = {"tol": 1e-10, "max_iter": 100_000}

CONVEX = {
    "ridge": (Ridge(alpha=0.5), DIABETES),
    "ridge, raw": (Ridge(alpha=10.0), RAW),
    "ridge of several outputs": (Ridge(), (DIABETES[0], np.column_stack([DIABETES[1], DIABETES[1] ** 2]))),
    "ridge by cross-validation": (RidgeCV(), DIABETES),
    "bayesian ridge": (BayesianRidge(), DIABETES),
    "lasso": (Lasso(alpha=0.3), DIABETES),
    "lasso, raw": (Lasso(alpha=5.0), RAW),
    "lasso by cross-validation": (LassoCV(), DIABETES),
    "elastic net": (ElasticNet(alpha=0.01, l1_ratio=0.3), DIABETES),
    "lasso of several outputs": (
        MultiTaskLasso(alpha=0.3),
        (DIABETES[0], np.stack([DIABETES[1]] * 2, axis=1)),
    ),
    "poisson": (PoissonRegressor(alpha=0.01, **TIGHT), COUNTS),
    "gamma": (GammaRegressor(alpha=0.01, **TIGHT), DIABETES),
    "tweedie": (TweedieRegressor(power=1.5, alpha=0.01, **TIGHT), DIABETES),
    "huber": (HuberRegressor(max_iter=10_000), DIABETES),
    "quantile": (QuantileRegressor(quantile=0.8, alpha=0.001), DIABETES),
    "linear svr": (LinearSVR(C=10.0, epsilon=5.0, **TIGHT), DIABETES),
    "logistic regression": (
        LogisticRegression(C=0.1, **TIGHT),
        (StandardScaler().fit_transform(CANCER[0]), CANCER[1]),
    ),
    "logistic regression, raw": (make_pipeline(StandardScaler(), LogisticRegression(C=10.0, **TIGHT)), WINE),
    "logistic regression, l1": (
        LogisticRegression(C=0.1, l1_ratio=1.0, solver="saga", **TIGHT),
        (StandardScaler().fit_transform(WINE[0]), WINE[1]),
    ),
    "balanced classes": (
        LogisticRegression(class_weight="balanced", **TIGHT),
        (StandardScaler().fit_transform(WINE[0]), WINE[1]),
    ),
    "ridge classifier": (RidgeClassifier(), (StandardScaler().fit_transform(CANCER[0]), CANCER[1])),
    "linear svc": (LinearSVC(C=0.1, **TIGHT), (StandardScaler().fit_transform(WINE[0]), WINE[1])),
    "linear svc, hinge": (
        LinearSVC(C=0.1, loss="hinge", **TIGHT),
        (StandardScaler().fit_transform(WINE[0]), WINE[1]),
    ),
    "sgd regressor": (
        SGDRegressor(alpha=0.01, tol=None, max_iter=3000),
        (StandardScaler().fit_transform(DIABETES[0]), DIABETES[1]),
    ),
    "sgd classifier": (
        SGDClassifier(alpha=0.1, tol=None, max_iter=2000),
        (StandardScaler().fit_transform(CANCER[0]), CANCER[1]),
    ),
}


def objective_value(trainer, model, X, y):
    """Return the training objective of ``trainer`` at the coefficients of a scikit-learn model."""
    trainer.set_weights(
        {
            "coef": np.asarray(model.coef_).reshape(np.atleast_2d(model.coef_).shape).T,
            "intercept": np.ravel(np.broadcast_to(model.intercept_, len(np.atleast_2d(model.coef_)))),
        }
    )
    weights = trainer._fitted.problem.targets.class_weights
    of_class = None if weights is None else np.array([weights[0][value] for value in y])
    losses = np.average(trainer.losses(X, y), weights=of_class)
    coef = trainer.get_weights()["coef"]
    own = trainer.penalty_
    parts = own.parts_for(False, "coef")
    value = losses + sum(
        part.absolute_factor * np.abs(coef).sum() + part.square_factor * (coef**2).sum() for part in parts
    )
    groups = np.sqrt(coef.shape[1] * (coef**2).sum(axis=1)).sum()
    value += sum(getattr(part, "strength", 0.0) * groups for part in parts)
    if any(part.applies_to(True, "intercept") for part in own.parts()):
        value += parts[0].square_factor * (trainer.get_weights()["intercept"] ** 2).sum()
    return value


@pytest.mark.sweep(7)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CONVEX)
def test_convex_models_reach_scikit_learns_optimum(name):
    model, (X, y) = CONVEX[name]
    trainer = OrtGradientOptimizer(model, dtype="float64", random_state=0).fit(X, y)
    fitted, trained = model.fit(X, y), trainer.to_sklearn()
    last = [part[-1] if hasattr(part, "steps") else part for part in (fitted, trained)]
    Z = model[:-1].transform(X) if hasattr(model, "steps") else X
    inner = OrtGradientOptimizer(last[0], dtype="float64", max_iter=1, learning_rate="SGD", keep_better=False)
    inner.fit(Z, y)
    best, found = (objective_value(inner, part, Z, y) for part in last)
    zero = last[1]
    zero.coef_, zero.intercept_ = np.zeros_like(zero.coef_), np.zeros_like(zero.intercept_)
    assert found - best <= 1e-3 * (objective_value(inner, zero, Z, y) - best)


@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_search_over_a_parameter_of_the_model(optimizer):
    X, y = DIABETES
    grid = {"alpha": [0.01, 1.0, 100.0]}
    expected = GridSearchCV(Ridge(), grid, cv=3).fit(X, y)
    search = GridSearchCV(
        optimizer(Ridge(), random_state=0), {f"estimator__{n}": v for n, v in grid.items()}, cv=3
    ).fit(X, y)
    scores = [found.cv_results_["mean_test_score"] for found in (search, expected)]
    np.testing.assert_allclose(*scores, atol=1e-4)


def test_penalty_is_relative_to_the_total_sample_weight():
    X, y = DIABETES
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    expected = Ridge(alpha=2.0).fit(X[repeated], y[repeated]).coef_
    trained = OrtGradientOptimizer(Ridge(alpha=2.0), random_state=0).fit(X, y, weights).to_sklearn()
    np.testing.assert_allclose(trained.coef_, expected, rtol=1e-3, atol=1e-2 * np.abs(expected).max())


@pytest.mark.parametrize("scale", [1e-4, 1e6])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(0.01), MLPRegressor(random_state=0)], ids=repr)
def test_labels_of_any_scale(model, scale):
    X, y = DIABETES
    expected, found = (OrtGradientOptimizer(model, random_state=0).fit(X, f * y) for f in (1.0, scale))
    assert found.score(X, scale * y) > expected.score(X, y) - 0.02


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FidelityWarning")
def test_quantile_of_the_model_is_kept():
    X, y = DIABETES
    model = HistGradientBoostingRegressor(loss="quantile", quantile=0.9, random_state=0).fit(X[:220], y[:220])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X[220:], y[220:])
    assert trainer.loss_.quantile == 0.9
    before, after = (mean_pinball_loss(y[220:], m.predict(X[220:]), alpha=0.9) for m in (model, trainer))
    assert after <= before
    assert abs(np.mean(y[220:] <= trainer.predict(X[220:])) - 0.9) < 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("network", [MLPRegressor, MLPClassifier])
def test_gradient_of_a_network_equals_scikit_learns(network):
    X, y = (DIABETES[0], DIABETES[1] / 100) if network is MLPRegressor else (CANCER[0] / 100, CANCER[1])
    X, y = X[:200], y[:200]
    model = network(hidden_layer_sizes=(5,), alpha=0.3, solver="sgd", momentum=0.0, max_iter=1, tol=0)
    model.set_params(shuffle=False, batch_size=200, random_state=0, learning_rate_init=1e-12)
    start = model.fit(X, y)
    rate = 1e-3
    trainer = OrtGradientOptimizer(start, warm_start=True, learning_rate=rate, batch_size=200, shuffle=False)
    trainer.set_params(max_iter=1, keep_better=False, dtype="float64", learning_rate=rate)
    before = [array.copy() for array in start.coefs_]
    moved = [new - old for new, old in zip(trainer.fit(X, y).to_sklearn().coefs_, before, strict=True)]
    start.set_params(warm_start=True, learning_rate_init=rate)
    after = start.fit(X, y)
    for own, array, old in zip(moved, after.coefs_, before, strict=True):
        np.testing.assert_allclose(own, array - old, rtol=1e-6, atol=1e-12)


def test_one_warning_names_all_ignored_parameters():
    X, y = CANCER
    with pytest.warns(ObjectiveWarning, match=r"SVC: training ignores C=0.7") as caught:
        OrtGradientOptimizer(SVC(C=0.7), max_iter=1, learning_rate=1e-9, keep_better=False).fit(
            X[:50], y[:50]
        )
    assert len([w for w in caught if w.category is ObjectiveWarning]) == 1
    forest = RandomForestClassifier(5, class_weight="balanced_subsample", random_state=0).fit(X, y)
    with pytest.warns(ObjectiveWarning, match="class_weight='balanced_subsample'"):
        OrtGradientOptimizer(forest, max_iter=1, learning_rate=1e-9, keep_better=False).fit(X, y)


@pytest.mark.parametrize(
    ("model", "ignored"),
    [
        (TweedieRegressor(power=1, link="identity", alpha=0.1, max_iter=1000), "alpha=0.1, power=1"),
        (Ridge(alpha=[1, 2]), r"alpha=\[1, 2\]"),
    ],
)
def test_parameters_of_linear_models_without_an_objective_are_named(model, ignored):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = rng.poisson(3 + np.abs(X[:, 0]))
    y = np.column_stack([y, y]) if isinstance(model, Ridge) else y
    with pytest.warns(ObjectiveWarning, match=f": training ignores {ignored}, since"):
        OrtGradientOptimizer(model, random_state=0).fit(X, y)


def test_warning_for_an_approximate_penalty():
    X, y = DIABETES
    model = HistGradientBoostingRegressor(l2_regularization=2.0, max_iter=5, random_state=0).fit(X, y)
    with pytest.warns(
        ObjectiveWarning, match="approximation in training: l2_regularization applies to the leaves"
    ):
        OrtGradientOptimizer(model, max_iter=1, learning_rate=1e-9, keep_better=False).fit(X, y)
    assert "nearly as HistGradientBoostingRegressor does" in str(explain(model, X))


def test_loss_of_a_model_without_an_objective():
    X, y = WINE
    assert objective_of(GaussianNB().fit(X, y), len(X)) is None
    text = str(explain(GaussianNB().fit(X, y), X))
    assert "minimised by default: LogLoss(), no penalty, as the objective of GaussianNB is unknown" in text


@pytest.mark.parametrize("weights", [None, "coef_", "intercept_"])
@pytest.mark.parametrize(
    "model", [MultiTaskElasticNet(alpha=0.1), MultiTaskElasticNetCV(alphas=[0.1, 0.01])], ids=str
)
@pytest.mark.parametrize("warm", [False, True])
def test_penalties_by_weight_of_a_model(model, weights, warm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    y = X @ rng.normal(size=(4, 2)) + 3
    fitted = clone(model).fit(X, y)
    trained = OrtGradientOptimizer(fitted, weights, warm_start=warm, keep_better=False, random_state=0).fit(
        X, y
    )
    penalised = [name for part in trained.penalty_.parts() for name in part.weights]
    assert set(penalised) == ({"coef"} if weights != "intercept_" else set())
    np.testing.assert_allclose(trained.predict(X), fitted.predict(X), atol=0.02)


def test_a_named_loss_without_a_useful_minimum_is_told():
    model = OrtGradientOptimizer(LogisticRegression(), learning_loss="perceptron", max_iter=3, random_state=0)
    with pytest.warns(ObjectiveWarning, match="no useful model, as the loss is zero"):
        model.fit(*CANCER)
    model.set_params(learning_rate=1e-3).fit(*CANCER)  # ends before the minimum


@pytest.mark.parametrize("value", [1.0, 20240101.0, 1e12])
@pytest.mark.parametrize("model", [Ridge(), LinearRegression(), LogisticRegression()])
def test_a_constant_column_changes_nothing(model, value):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = X @ [1, 0, -1, 0, 0.5] + 0.3 * rng.normal(size=300)
    y = y > 0 if isinstance(model, LogisticRegression) else y
    expected = clone(model).fit(np.delete(X, 1, axis=1), y).score(np.delete(X, 1, axis=1), y)
    X[:, 1] = value
    assert OrtGradientOptimizer(model, random_state=0).fit(X, y).score(X, y) > expected - 0.01


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("model", [RandomForestRegressor(10, random_state=0), KNeighborsRegressor(), SVR()])
def test_losses_of_logarithms_start_from_logarithms(model, loss, fitted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    means = np.exp(1 + 0.8 * X[:, 0] + 0.3 * X[:, 1])
    y = rng.poisson(means) + (loss == "gamma")
    train, test = slice(300), slice(300, None)
    own = clone(model).fit(X[train], y[train])
    trained = OrtGradientOptimizer(own if fitted else model, learning_loss=loss, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained.fit(X[train], y[train])
        before, after = (
            mean_poisson_deviance(y[test], np.maximum(m.predict(X[test]), 0.01)) for m in (own, trained)
        )
    assert after < 1.1 * before


def test_a_warm_start_for_logarithms_is_told():
    model, y = SVR().fit(*DIABETES), DIABETES[1]
    trainer = OrtGradientOptimizer(model, learning_loss="poisson", warm_start=True, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.fit(DIABETES[0], y)
    assert any("PoissonLoss takes the predictions of SVR as logarithms" in str(w.message) for w in caught)


KEPT = {
    "a penalty for each output": Ridge(alpha=[1, 2]),
    "class weights of several classes": LinearSVC(class_weight={0: 5, 1: 1, 2: 5}, random_state=0),
    "one epoch in a pipeline": make_pipeline(
        StandardScaler(), SGDClassifier(class_weight={0: 1, 1: 5, 2: 1}, random_state=0)
    ),
}


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.ObjectiveWarning")
@pytest.mark.parametrize("model", KEPT.values(), ids=KEPT.keys())
def test_a_start_that_may_be_kept_is_fitted_on_all_samples(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    score = X @ [1, 2, -1, 0] + rng.normal(size=1500) * 0.3
    y = np.digitize(score, [-1.5, 1.5])
    y[200:] = 2 - y[200:]  # the first samples, which would suffice for shapes, are of another kind
    y = np.column_stack([y, y]) if isinstance(model, Ridge) else y
    expected = clone(model).fit(X, y)
    trainer = OrtGradientOptimizer(model, random_state=0).fit(X, y)
    assert trainer.score(X, y) >= expected.score(X, y) - 0.01


def test_classifiers_of_several_outputs_reach_the_optimum():
    X, y = StandardScaler().fit_transform(WINE[0]), WINE[1]
    Y = np.column_stack([y, y == 1])
    own = MultiOutputClassifier(LogisticRegression(max_iter=1000)).fit(X, Y)
    trained = OrtGradientOptimizer(clone(own), random_state=0).fit(X, Y)
    for expected, found in zip(own.predict_proba(X), trained.predict_proba(X), strict=True):
        np.testing.assert_allclose(found, expected, atol=5e-3)


def test_networks_tell_of_outputs_of_other_scales():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=200)
    y = np.column_stack([y, 1e4 * y, np.full(200, 0.1)])
    network = MLPRegressor(hidden_layer_sizes=(4,), random_state=0)

    def trained(model, y):
        return OrtGradientOptimizer(model, random_state=0).fit(X, y)

    with pytest.warns(ObjectiveWarning, match=r"y\[:, 0\] has .* of 2.*, y\[:, 1\] of 2.*e\+04: .* smaller"):
        trained(network, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ObjectiveWarning)
        trained(network, y / [1, 1e3, 1])
        trained(Ridge(), y / [1, 100, 1])
        scaled = trained(TransformedTargetRegressor(network, transformer=StandardScaler()), y)
    assert r2_score(y[:, :2], scaled.predict(X)[:, :2], multioutput="raw_values").min() > 0.95
