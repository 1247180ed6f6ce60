"""Losses as objectives of LightGBM, and LightGBM grown on any loss."""

import pickle

import lightgbm
import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification, make_friedman1
from sklearn.metrics import mean_pinball_loss, roc_auc_score

from ortlearn import OrtGradientOptimizer, losses
from ortlearn.exceptions import PluginError
from ortlearn.losses import as_objective

X, Y = make_friedman1(500, noise=1.0, random_state=0)
PAIR = make_classification(300, 6, random_state=0)
SMALL = {"n_estimators": 15, "verbose": -1, "n_jobs": 1, "boost_from_average": False}
OWN = {
    "regression": losses.SquaredErrorLoss(),
    "gamma": losses.GammaLoss(),
    "tweedie": losses.TweedieLoss(1.5),
    "binary": losses.LogLoss(),
}


def splits(booster):
    """Return the splits of all trees, and the values of their leaves."""
    frame = booster.trees_to_dataframe()
    return frame[["split_feature", "threshold", "left_child", "right_child"]], frame["value"]


@pytest.mark.parametrize("name", OWN)
def test_own_losses_give_the_same_trees(name):
    samples, y = PAIR if name == "binary" else (X, np.abs(Y) + 0.1)
    options = {**SMALL, "n_estimators": 5 if name == "binary" else 15}
    own = LGBMRegressor(objective=name, **options).fit(samples, y).booster_
    found = LGBMRegressor(objective=as_objective(OWN[name]), **options).fit(samples, y).booster_
    (trees, values), (same, others) = splits(own), splits(found)
    assert trees.equals(same)
    np.testing.assert_allclose(values, others, rtol=1e-3, atol=1e-5)


def test_train_calls_it_with_a_data_set_and_weights():
    weights = np.linspace(0.5, 2, len(Y))
    data = lightgbm.Dataset(X, Y, weight=weights)
    options = {"verbose": -1, "boost_from_average": False, "num_threads": 1}
    own = lightgbm.train({"objective": "regression", **options}, data, 5)
    data = lightgbm.Dataset(X, Y, weight=weights)
    found = lightgbm.train({"objective": as_objective("squared_error"), **options}, data, 5)
    np.testing.assert_allclose(found.predict(X), own.predict(X), rtol=1e-4)


@pytest.mark.parametrize(
    ("loss", "label", "domain"), [("poisson", -1.0, r"\[0, inf\)"), ("gamma", 0.0, r"\(0, inf\)")]
)
def test_labels_outside_of_the_domain_are_an_error(loss, label, domain):
    with pytest.raises(ValueError, match=f"outside of {domain}, such as {label:g}, which"):
        as_objective(loss)(np.array([1.0, label]), np.zeros(2))
    with pytest.raises(ValueError, match="outside of"):
        LGBMRegressor(objective=as_objective(loss), **SMALL).fit(X, np.where(Y > 10, Y, label))


@pytest.mark.parametrize("loss", ["hinge", "focal", "log_loss"])
@pytest.mark.parametrize("labels", [Y, PAIR[1] + 1, 2 * PAIR[1] - 1, np.where(PAIR[1], np.nan, 0.0)])
def test_labels_that_are_not_those_of_classes_are_an_error(loss, labels):
    with pytest.raises(ValueError, match="takes the labels 0 and 1, and y has"):
        as_objective(loss)(labels, np.zeros(len(labels)))
    with pytest.raises(ValueError, match="0 to 2, one for each sample, and y has 7"):
        as_objective(loss)(np.array([1.0, 7.0]), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="takes the labels 0 and 1"):
        LGBMRegressor(objective=as_objective(loss), **SMALL).fit(X, Y)


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_labels_of_several_classes_are_numbers_or_columns(package):
    labels, scores = np.arange(20.0) % 3, np.random.default_rng(0).normal(size=(20, 3))
    for found, expected in zip(
        as_objective("hinge", package)(labels, scores),
        as_objective("hinge", package)(np.eye(3)[labels.astype(int)], scores),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="one for each sample, and y has 3 columns"):
        as_objective("log_loss", package)(np.eye(3)[labels.astype(int)], scores)


@pytest.mark.parametrize("n_classes", [3, 12])
def test_expressions_and_several_classes(n_classes):
    gradient, hessian = as_objective(losses.ExpressionLoss("(label - score) ** 2 + (label - score) ** 4"))(
        np.zeros(2), np.array([1.0, 2.0])
    )
    np.testing.assert_allclose([gradient, hessian], [[6.0, 36.0], [14.0, 50.0]])
    scores, labels = np.random.default_rng(0).normal(size=(20, n_classes)), np.arange(20) % n_classes
    gradient, hessian = as_objective("log_loss")(labels, scores)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(gradient, shares - np.eye(n_classes)[labels], atol=1e-6)
    np.testing.assert_allclose(hessian, shares * (1 - shares), atol=1e-6)


def test_a_second_derivative_that_vanishes_far_from_labels_does_not_enlarge_steps():
    log_cosh = "expression: abs(label - score) + log(1 + exp(-2 * abs(label - score)))"
    labels = np.array([0.5, 3.0, -30.0])
    gradient, curvature = as_objective(log_cosh)(labels, np.zeros(3))
    np.testing.assert_allclose(gradient, np.tanh(-labels), atol=1e-6)
    assert curvature[0] == pytest.approx(1 / np.cosh(0.5) ** 2, rel=1e-5)  # the second derivative
    assert (np.abs(gradient) <= 2 * np.abs(labels) * curvature * (1 + 1e-6)).all()
    samples, y = X[:400], np.exp(Y[:400] / 5)
    model = LGBMRegressor(objective=as_objective(log_cosh), **SMALL).fit(samples, y)
    assert np.abs(model.predict(samples) - y).mean() < 0.8 * np.abs(np.median(y) - y).mean()


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(
    "name, n_scores", [("squared_error", 1), ("log_loss", 1), ("huber", 1), ("log_loss", 3)]
)
def test_many_samples_in_blocks_have_the_derivatives_of_few(package, name, n_scores):
    """Labels are float32, and scores of several classes in either order."""
    n, random = 150_001, np.random.default_rng(0)
    labels = random.integers(max(n_scores, 2), size=n).astype(np.float32)
    scores = 3 * random.normal(size=(n, n_scores) if n_scores > 1 else n)
    objective = as_objective(name, package=package)
    whole = objective(labels, np.asfortranarray(scores) if package == "lightgbm" else scores.astype("f4"))
    for start in (0, 70_000, n - 1000):
        part = slice(start, start + 1000)
        for found, expected in zip(whole, objective(labels[part], scores[part]), strict=True):
            assert found.shape == scores.shape
            np.testing.assert_allclose(found[part], expected, rtol=1e-5, atol=1e-6)


def test_objectives_are_pickled_and_wrong_ones_refused():
    objective = pickle.loads(pickle.dumps(as_objective("huber")))
    assert objective(np.zeros(1), np.array([0.5]))[0].tolist() == [0.5]
    with pytest.raises(ValueError, match="package='sklearn' must be one of"):
        as_objective("huber", package="sklearn")
    with pytest.raises(PluginError, match="subclass of BaseLoss"):
        as_objective(lambda y, f: ((f - y) ** 2, 2 * (f - y)))


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.1, 0.9])
def test_quantiles_are_better_than_those_of_lightgbm(level):
    samples, y = make_friedman1(1500, noise=1.0, random_state=1)
    own = LGBMRegressor(objective="quantile", alpha=level, verbose=-1, n_jobs=1).fit(samples[:500], y[:500])
    trained = OrtGradientOptimizer(
        LGBMRegressor(verbose=-1, n_jobs=1), learning_loss=losses.QuantileLoss(level), random_state=0
    ).fit(samples[:500], y[:500])
    before, after = (
        mean_pinball_loss(y[500:], model.predict(samples[500:]), alpha=level) for model in (own, trained)
    )
    assert after < before and abs((y[500:] <= trained.predict(samples[500:])).mean() - level) < 0.06
    model = trained.to_sklearn()
    assert model.get_params()["objective"] is None
    np.testing.assert_allclose(model.predict(samples), trained.predict(samples), rtol=1e-4)


@pytest.mark.parametrize("loss", [losses.FocalLoss(), losses.HingeLoss()])
@pytest.mark.parametrize("data", [PAIR, load_wine(return_X_y=True)])
def test_classifiers_are_of_the_same_class(loss, data):
    samples, y = data
    trained = OrtGradientOptimizer(LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1), learning_loss=loss)
    trained = trained.fit(samples, np.array(["a", "b", "c"])[y])
    model = trained.to_sklearn()
    assert model.score(samples, np.array(["a", "b", "c"])[y]) > 0.9
    np.testing.assert_allclose(model.predict_proba(samples), trained.predict_proba(samples), atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "focal", "modified_huber"])
def test_rare_classes_are_learnt(loss):
    samples, y = make_classification(1500, 10, n_informative=6, weights=[0.9], random_state=0)
    trained = OrtGradientOptimizer(LGBMClassifier(n_estimators=50, verbose=-1, n_jobs=1), learning_loss=loss)
    trained = trained.fit(samples[:800], y[:800])
    assert roc_auc_score(y[800:], trained.decision_function(samples[800:])) > 0.85


@pytest.mark.parametrize("n_samples", [10, 30, 45])
def test_few_samples_have_the_constant_of_the_own_fit(n_samples):
    model = LGBMRegressor(n_estimators=10, verbose=-1, n_jobs=1, random_state=0)
    own = clone(model).set_params(objective="quantile").fit(X[:n_samples], Y[:n_samples])
    trained = OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(0.9), random_state=0)
    found = trained.fit(X[:n_samples], Y[:n_samples]).to_sklearn()
    assert (np.ptp(found.predict(X)) == 0) == (np.ptp(own.predict(X)) == 0)
    np.testing.assert_allclose(found.predict(X).mean(), own.predict(X).mean(), rtol=0.1)
    assert found.get_params() == model.get_params()


def test_a_log_link_and_constraints_hold():
    model = LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1, monotone_constraints=[0, 0, 0, -1] + [0] * 6)
    counts = np.abs(Y)
    found = OrtGradientOptimizer(model, learning_loss="poisson", random_state=0).fit(X, counts)
    np.testing.assert_allclose(found.to_sklearn().predict(X), found.predict(X), rtol=1e-4)
    assert np.corrcoef(found.predict(X), counts)[0, 1] > 0.8
    found = OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(0.8), random_state=0).fit(X, Y)
    steps = np.repeat(X[:20], 50, axis=0)
    steps[:, 3] = np.tile(np.linspace(0, 1, 50), 20)
    assert (np.diff(found.predict(steps).reshape(20, 50), axis=1) <= 1e-5).all()


@pytest.mark.parametrize("name", ["monotone_constraints", "monotone_constraint", "monotonic_cst", "mc"])
def test_constraints_hold_under_each_of_their_names(name):
    random = np.random.RandomState(7)
    samples = random.uniform(-2, 2, (500, 2))
    y = np.exp(samples[:, 0]) * (1 + 0.5 * random.standard_normal(500))
    steps = np.column_stack([np.linspace(-2, 2, 401), np.zeros(401)])
    model = LGBMRegressor(**{name: np.array([1, 0])}, n_estimators=30, verbose=-1, n_jobs=1, random_state=0)
    trained = OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(0.9), random_state=0)
    assert np.diff(trained.fit(samples, y).predict(steps)).min() >= 0
