"""Estimators of XGBoost, which computes in float32."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_pinball_loss

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.losses import CrossEntropyLoss, GammaLoss, HingeLoss, LogLoss, QuantileLoss
from ortlearn.models import objective_of
from ortlearn.penalties import ElasticPenalty
from ortlearn.testing import check_model, check_objective

xgboost = pytest.importorskip("xgboost")
from xgboost import (  # noqa: E402
    XGBClassifier,
    XGBRanker,
    XGBRegressor,
    XGBRFClassifier,
    XGBRFRegressor,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*booster=gblinear.*is deprecated"),
    pytest.mark.filterwarnings("ignore:.*XGBRF.*is deprecated"),
]
SMALL = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "random_state": 0}
LINEAR = {"booster": "gblinear", "n_estimators": 4, "random_state": 0}
check = partial(check_model, rtol=2e-6)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"rate_drop": 0.5, "n_estimators": 8},
        {"num_parallel_tree": 3, "subsample": 0.5, "gamma": 0.1},
        {"base_score": 3.0},
        {"objective": "reg:pseudohubererror"},
        pytest.param({"objective": lambda y, f: (f - y, np.ones_like(y))}, id="function"),
    ],
    ids=str,
)
def test_regressor(params, samples, run):
    check(XGBRegressor(**{**SMALL, **params}).fit(samples.missing, samples.y), samples.missing, run=run)


@pytest.mark.parametrize(
    "objective",
    [
        *("reg:absoluteerror", "reg:squaredlogerror", "count:poisson", "reg:gamma", "reg:tweedie"),
        *("reg:logistic", "reg:quantileerror"),
    ],
)
def test_objectives(objective, samples, run):
    y = samples.shares if objective == "reg:logistic" else samples.positive
    model = XGBRegressor(objective=objective, **SMALL)
    if objective == "reg:quantileerror":
        model.set_params(quantile_alpha=0.7)
    check(model.fit(samples.missing, y), samples.missing, run=run)


@pytest.mark.parametrize(
    "params",
    [
        {"num_parallel_tree": 2},
        {"multi_strategy": "multi_output_tree"},
    ],
    ids=str,
)
def test_several_outputs(params, samples, run, retrain):
    y = np.column_stack([samples.y, -2 * samples.y])
    model = XGBRegressor(**SMALL, **params).fit(samples.missing, y)
    check(model, samples.missing, run=run)
    retrain(model, samples.missing, y)


@pytest.mark.parametrize("kind", [XGBRegressor, XGBClassifier])
def test_linear_boosters(kind, samples, run, retrain):
    several = np.column_stack([samples.y, -2 * samples.y])
    for y in (samples.y, several) if kind is XGBRegressor else (samples.two, samples.three):
        model = kind(**LINEAR).fit(samples.missing, y)
        check(model, samples.missing, run=run)
        retrain(model, samples.missing, y)


def test_several_quantiles(samples, run):
    model = XGBRegressor(objective="reg:quantileerror", quantile_alpha=[0.1, 0.9], **SMALL)
    check(model.fit(samples.missing, samples.y), samples.missing, run=run)
    assert objective_of(model, 200) is None


@pytest.mark.parametrize("kind", [XGBRFRegressor, XGBRFClassifier])
def test_random_forests(kind, samples, run, retrain):
    y = samples.y if kind is XGBRFRegressor else samples.three
    model = kind(**SMALL).fit(samples.missing, y)
    check(model, samples.missing, run=run)
    retrain(model, samples.missing, y)
    high = (y > np.median(y)) | (np.arange(len(y)) % 4 == 0)
    retrain(model, samples.missing[high], y[high], weights_to_train="base_values")


@pytest.mark.parametrize(
    "params, labels",
    [
        ({}, "two"),
        ({"base_score": 0.2}, "two"),
        ({"objective": "binary:hinge"}, "two"),
        ({}, "three"),
        ({"objective": "multi:softmax"}, "three"),
    ],
    ids=str,
)
def test_classifier(params, labels, samples, run):
    y = getattr(samples, labels)
    check(XGBClassifier(**SMALL, **params).fit(samples.missing, y), samples.missing, run=run)


@pytest.mark.parametrize("kind", [XGBClassifier, XGBRFClassifier])
def test_scores_are_margins(kind, samples, scores_of):
    for y in (samples.two, samples.three):
        model = kind(**SMALL).fit(samples.missing, y)
        found, expected = (
            scores_of(model, samples.missing),
            model.predict(samples.missing, output_margin=True),
        )
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-5, atol=1e-6)


def test_several_labels(samples, run, retrain):
    y = np.column_stack([samples.two, samples.X[:, 0] > 0]).astype(int)
    model = XGBClassifier(**SMALL).fit(samples.missing, y)
    check(model, samples.missing, run=run)
    retrain(model, samples.missing, y)


def test_ranker(samples, run, retrain):
    model = XGBRanker(**SMALL).fit(samples.X, samples.three, qid=np.repeat(np.arange(10), 20))
    check(model, samples.missing, run=run)
    retrain(model, samples.X, samples.y, weights_to_train="base_values")


def test_missing_values_that_are_a_number(samples, run):
    X = np.nan_to_num(samples.missing, nan=-9.0)
    check(
        XGBRegressor(missing=-9.0, **SMALL).fit(X, samples.y), np.concatenate([X, samples.missing]), run=run
    )


def test_early_stopping(samples, run):
    X, y = samples.X, samples.y
    model = XGBRegressor(**{**SMALL, "n_estimators": 60}, early_stopping_rounds=2, learning_rate=0.8)
    model.fit(X[50:], y[50:], eval_set=[(X[:50], y[:50])], verbose=0)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds() < 60
    check(model, X, run=run)


@pytest.mark.parametrize("params", [{"max_cat_to_onehot": 1}, {"max_cat_to_onehot": 100}], ids=str)
def test_categories(params, samples, run):
    X = samples.categories.copy()
    X[1::40, 4] = np.nan
    model = XGBRegressor(feature_types=["c", "q", "q", "q", "c"], **SMALL, **params)
    model.fit(X, samples.of_categories)
    X[::20, 4], X[2::20, 0] = np.nan, np.nan
    check(model, X, run=run)


@pytest.mark.parametrize("columns", [["a", "c", "i"], ["i", "a"]], ids=["texts", "numbers"])
def test_categories_of_frames(columns, samples, retrain):
    rng = np.random.RandomState(1)
    texts = pd.Categorical(np.array(["u", "é", "w", "xyz"])[rng.randint(0, 4, 200)])
    X = pd.DataFrame({"a": samples.X[:, 0], "c": texts, "i": pd.Categorical(rng.randint(3, 9, 200))})
    y = np.asarray(X["a"] + 3.0 * X["c"].isin(["é"]) - 2.0 * (X["i"].astype(int) % 3 == 0))
    X.loc[:9, "c"], X.loc[5:14, "i"] = None, None
    X = X[columns]
    trained = retrain(XGBRegressor(**SMALL).fit(X, y), X, y)
    others = X.assign(i=X["i"].cat.set_categories([8, 7, 6, 5, 4, 3]))
    np.testing.assert_allclose(trained.predict(others), trained.to_sklearn().predict(others), atol=1e-5)


@pytest.mark.parametrize(
    "model, labels, message",
    [
        (XGBRegressor(objective="survival:cox", **SMALL), "positive", "'survival:cox' is not supported"),
        (XGBClassifier(objective="binary:logitraw", **SMALL), "two", "is not supported"),
        (XGBClassifier(objective=lambda y, f: (f - y, np.ones_like(y)), **SMALL), "two", "is not supported"),
    ],
    ids=["survival", "raw", "function"],
)
def test_unsupported_models_are_refused(model, labels, message, samples):
    fitted = model.fit(samples.X, getattr(samples, labels))
    with pytest.raises(ConversionError, match=message):
        OrtGradientOptimizer(fitted, warm_start=True).fit(samples.X, getattr(samples, labels))


@pytest.mark.parametrize("penalty", [{"reg_lambda": 0.0}, {"reg_lambda": 3.0, "reg_alpha": 5.0}], ids=str)
def test_a_single_tree_minimises_the_objective(penalty, samples, run):
    alone = {**SMALL, "n_estimators": 1, "learning_rate": 1.0, "base_score": 0.0, **penalty}
    checked = partial(check_objective, run=run, rtol=1e-4)
    checked(XGBRegressor(**alone).fit(samples.X, samples.y), samples.X, samples.y)
    with pytest.raises(AssertionError, match="falls along"):
        checked(XGBRegressor(**alone).fit(samples.X, samples.y - 0.3), samples.X, samples.y)


def test_a_linear_booster_minimises_the_objective(samples, run):
    params = {**LINEAR, "n_estimators": 300, "updater": "coord_descent"}
    model = XGBRegressor(**params, learning_rate=0.5, reg_lambda=0.3, reg_alpha=0.2)
    model.fit(samples.X, samples.y)
    check_objective(model, samples.X, samples.y, run=run, rtol=1e-3)


@pytest.mark.parametrize(
    "model, labels, loss",
    [
        (XGBRegressor(objective="reg:quantileerror", quantile_alpha=0.2), "y", QuantileLoss(0.2)),
        (XGBRegressor(objective="reg:gamma"), "positive", GammaLoss()),
        (XGBRegressor(objective="reg:logistic"), "shares", CrossEntropyLoss()),
        (XGBClassifier(objective="binary:hinge"), "two", HingeLoss()),
        (XGBClassifier(), "three", LogLoss()),
        (XGBClassifier(scale_pos_weight=2.0), "two", None),
        (XGBRegressor(objective="reg:pseudohubererror"), "y", None),
    ],
)
def test_objective(model, labels, loss, samples):
    fitted = model.set_params(**SMALL).fit(samples.X, getattr(samples, labels))
    found = objective_of(fitted, 200)
    assert repr(None if found is None else found.loss) == repr(loss)


def test_penalty_of_leaves(samples):
    model = XGBRegressor(reg_lambda=2.0, reg_alpha=3.0, learning_rate=0.5, **SMALL)
    found = objective_of(model.fit(samples.X, samples.y), 100)
    assert found.approximate and repr(found.penalty) == repr(ElasticPenalty(l1=3.0 / 50, l2=2.0 / 50))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_and_back(dtype, samples, retrain):
    X = samples.missing.astype(dtype)
    trained = retrain(XGBClassifier(**SMALL).fit(X, samples.three), X, samples.three, dtype=dtype)
    assert trained.weights_to_train_ == {"leaf_values": "get_booster().leaf_values"}
    retrain(XGBRegressor(rate_drop=0.5, **SMALL).fit(X, samples.y), X, samples.y)
    retrain(XGBRegressor(objective="count:poisson", **SMALL).fit(X, samples.positive), X, samples.positive)


@pytest.mark.parametrize(
    "model, labels",
    [
        (XGBRegressor(**SMALL), "y"),
        (XGBRegressor(objective="reg:gamma", **SMALL), "positive"),
        (XGBClassifier(**SMALL), "two"),
        (XGBClassifier(**SMALL), "three"),
    ],
    ids=["identity", "logarithm", "logit", "several"],
)
def test_selected_base_scores_are_trained(model, labels, samples, retrain):
    X, y = samples.X, getattr(samples, labels)
    model.fit(X, y)
    high = (y > np.median(y)) | (np.arange(len(y)) % 4 == 0)
    trained = retrain(model, X[high], y[high], weights_to_train="base_values")
    assert trained.weights_to_train_ == {"base_values": "base_score"}


def test_search(samples, search):
    assert search(XGBRegressor(**SMALL), samples.X, samples.y, max_depth=[1, 4]) == {"max_depth": 4}


def test_names_of_columns_outside_ascii(samples):
    frame = pd.DataFrame(samples.missing, columns=["é", "日本", 'a"\\', "b"])
    for loss in ("auto", "huber"):
        model = XGBRegressor(n_estimators=2, n_jobs=1)
        trained = OrtGradientOptimizer(model, learning_loss=loss, learning_rate="auto", random_state=0)
        found = trained.fit(frame, samples.y).to_sklearn()
        np.testing.assert_allclose(found.predict(frame), trained.predict(frame), rtol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_quantile_after_a_drift_begins_with_shifted_leaves():
    rng = np.random.RandomState(0)
    X = rng.uniform(-2, 2, (1000, 4))
    y = np.exp(X[:, 0]) * (1 + 0.4 * rng.standard_normal(1000)) + 3 * (X[:, 1] > 0)
    fitted = XGBRegressor(n_estimators=20, n_jobs=1).fit(X[:300], y[:300])
    y = y * 1.6 + 5
    options = {"learning_loss": QuantileLoss(0.9), "learning_rate": "auto", "max_iter": 100}
    trainer = OrtGradientOptimizer(fitted, warm_start=True, random_state=0, **options)
    predicted = trainer.fit(X[300:450], y[300:450]).predict(X[450:])
    shifted = fitted.predict(X[450:]) + np.quantile(y[300:450] - fitted.predict(X[300:450]), 0.9)
    losses = [mean_pinball_loss(y[450:], own, alpha=0.9) for own in (predicted, shifted)]
    assert losses[0] < 1.05 * losses[1]
