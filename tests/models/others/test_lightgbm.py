"""Estimators of LightGBM."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor, early_stopping

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.losses import CrossEntropyLoss, HuberLoss, LogLoss, QuantileLoss, SquaredErrorLoss
from ortlearn.models import objective_of
from ortlearn.penalties import ElasticPenalty
from ortlearn.testing import check_model, check_objective

SMALL = {"n_estimators": 5, "num_leaves": 5, "verbose": -1, "n_jobs": 1, "random_state": 0}
BY_CATEGORY = {"min_data_per_group": 1, "cat_smooth": 1, "min_child_samples": 5}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
        {"boosting_type": "dart", "drop_rate": 0.9},
        {"data_sample_strategy": "goss", "learning_rate": 1.0},
        {"min_child_samples": 150},  # trees of one leaf
        {"reg_sqrt": True},
        pytest.param({"objective": lambda y, f: (f - y, np.ones_like(y))}, id="function"),
    ],
    ids=str,
)
def test_regressor(params, samples, run):
    zeros = np.where(samples.X < -1, 0.0, samples.missing)
    edges = [[0.0, -0.0, 1e-36, -1e-36], [1e-34, np.nan, 9.0, -9.0]]
    for fitted_on in (samples.X, zeros):
        model = LGBMRegressor(**SMALL, **params).fit(fitted_on, samples.y)
        check_model(model, np.concatenate([zeros[:60], edges]), run=run)


OBJECTIVES = "regression_l1 huber quantile fair mape poisson gamma tweedie cross_entropy".split()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives(objective, samples, run):
    y = samples.shares if objective == "cross_entropy" else samples.positive
    check_model(LGBMRegressor(objective=objective, **SMALL).fit(samples.missing, y), samples.X, run=run)


@pytest.mark.parametrize("labels", ["two", "three"])
@pytest.mark.parametrize(
    "params", [{}, {"sigmoid": 2.0}, {"objective": "multiclassova", "sigmoid": 2.0}], ids=str
)
def test_classifier(params, labels, samples, run):
    if labels == "two":
        params = {key: value for key, value in params.items() if key != "objective"}
    y = np.array(["low", "mid", "top"])[getattr(samples, labels)]
    check_model(LGBMClassifier(**SMALL, **params).fit(samples.missing, y), samples.missing, run=run)


def test_ranker(samples, run):
    model = LGBMRanker(**SMALL).fit(samples.X, samples.three, group=[20] * 10)
    check_model(model, samples.missing, run=run)
    assert objective_of(model, 200) is None


def test_missing_values_of_two_kinds_in_one_booster(samples, run):
    first = LGBMRegressor(zero_as_missing=True, **SMALL).fit(samples.missing, samples.y)
    both = LGBMRegressor(**SMALL).fit(samples.missing, samples.y, init_model=first)
    splits = str(both.booster_.dump_model())
    assert "'missing_type': 'Zero'" in splits and "'missing_type': 'NaN'" in splits
    check_model(both, np.where(samples.X < -1, 0.0, samples.missing), run=run)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")
def test_early_stopping(samples, run):
    X, y = samples.X, samples.y
    model = LGBMRegressor(**{**SMALL, "n_estimators": 60}, learning_rate=0.5)
    held_out = [(X[:50], y[:50] + np.random.RandomState(0).normal(size=50))]
    model.fit(X[50:], y[50:], eval_set=held_out, callbacks=[early_stopping(2, verbose=False)])
    assert model.best_iteration_ < 60
    check_model(model, X, run=run)


@pytest.mark.parametrize("params", [{}, {"max_cat_to_onehot": 100}], ids=["subsets", "one_hot"])
def test_categories(params, samples, run):
    X = samples.categories.copy()
    model = LGBMRegressor(**SMALL, **BY_CATEGORY, **params)
    model.fit(X, samples.of_categories, categorical_feature=[0, 4])
    assert "'==" in str(model.booster_.dump_model())
    for value, rows in {np.nan: 0, -1: 1, -0.5: 2, 3.7: 3, 1000.0: 4}.items():
        X[rows::20, [0, 4]] = value
    check_model(model, X, run=run)


@pytest.fixture
def frame(samples):
    """Columns of numbers, texts and whole numbers as categories, some of them missing."""
    rng = np.random.RandomState(1)
    texts = pd.Categorical(np.array(list("uvwxyz"))[rng.randint(0, 6, 200)], categories=list("zyxwvu"))
    X = pd.DataFrame({"a": samples.X[:, 0], "c": texts, "i": pd.Categorical(rng.randint(3, 9, 200))})
    y = X["a"] + 3.0 * X["c"].isin(["v", "x"]) - 2.0 * (X["i"].astype(int) % 3 == 0)
    X.loc[:9, "c"], X.loc[5:14, "i"] = None, None
    return X, np.asarray(y)


@pytest.mark.parametrize("columns", [["a", "c", "i"], ["i", "a"]], ids=["texts", "numbers"])
def test_categories_of_frames(columns, frame, retrain):
    X, y = frame[0][columns], frame[1]
    trained = retrain(LGBMRegressor(**SMALL, **BY_CATEGORY).fit(X, y), X, y)
    others = X.assign(i=X["i"].cat.set_categories([8, 7, 6, 5, 4, 3]))
    np.testing.assert_allclose(trained.predict(others), trained.to_sklearn().predict(others), atol=1e-5)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda X: X.assign(c=X["c"].cat.rename_categories({"u": "nan"})), "is the text 'nan'"),
        (lambda X: X.assign(i=pd.Categorical(X["i"], ordered=True)), "not report which"),
    ],
)
def test_frames_that_are_refused(change, message, frame):
    X, y = change(frame[0]), frame[1]
    model = LGBMRegressor(**SMALL, **BY_CATEGORY).fit(X, y)
    with pytest.raises(ConversionError, match=message):
        OrtGradientOptimizer(model, warm_start=True).fit(X, y)


@pytest.mark.parametrize(
    "model, labels, message",
    [
        (LGBMRegressor(linear_tree=True, **SMALL), "y", "drop linear_tree"),
        (LGBMRegressor(objective="binary", **SMALL), "two", "'binary' is not supported"),
        (LGBMClassifier(objective="multiclassova", num_class=2, **SMALL), "two", "is not supported"),
        (LGBMClassifier(objective=lambda y, f: (f - y, np.ones_like(y)), **SMALL), "two", "is not supported"),
    ],
    ids=["linear", "binary", "one_against_rest", "function"],
)
def test_unsupported_models_are_refused(model, labels, message, samples):
    fitted = model.fit(samples.X, getattr(samples, labels))
    with pytest.raises(ConversionError, match=message):
        OrtGradientOptimizer(fitted, warm_start=True).fit(samples.X, getattr(samples, labels))


@pytest.mark.parametrize("penalty", [{}, {"reg_lambda": 3.0}, {"reg_lambda": 3.0, "reg_alpha": 5.0}], ids=str)
def test_a_single_tree_minimises_the_objective(penalty, samples, run):
    alone = {**SMALL, "n_estimators": 1, "learning_rate": 1.0, "boost_from_average": False, **penalty}
    check_objective(LGBMRegressor(**alone).fit(samples.X, samples.y), samples.X, samples.y, run=run)
    low = LGBMRegressor(**alone).fit(samples.X, samples.y - 0.3)
    with pytest.raises(AssertionError, match="falls along"):
        check_objective(low, samples.X, samples.y, run=run)


@pytest.mark.parametrize(
    "model, labels, loss",
    [
        (LGBMRegressor(objective="quantile", alpha=0.2), "y", QuantileLoss(0.2)),
        (LGBMRegressor(objective="huber"), "y", HuberLoss(0.9)),
        (LGBMRegressor(objective="cross_entropy"), "shares", CrossEntropyLoss()),
        (LGBMClassifier(), "three", LogLoss()),
        (LGBMClassifier(is_unbalance=True), "two", None),
        (LGBMRegressor(objective="fair"), "y", None),
        (LGBMRegressor(reg_sqrt=True), "y", None),
    ],
)
def test_objective(model, labels, loss, samples):
    fitted = model.set_params(**SMALL).fit(samples.X, getattr(samples, labels))
    found = objective_of(fitted, 200)
    assert repr(None if found is None else found.loss) == repr(loss)


def test_penalty_of_leaves(samples):
    for names in (("reg_lambda", "reg_alpha", "learning_rate"), ("lambda_l2", "lambda_l1", "learning_rate")):
        model = LGBMRegressor(**dict(zip(names, (2.0, 3.0, 0.5), strict=True)), **SMALL)
        found = objective_of(model.fit(samples.X, samples.y), 100)
        assert repr(found.loss) == repr(SquaredErrorLoss()) and found.approximate
        assert repr(found.penalty) == repr(ElasticPenalty(l1=3.0 / 50, l2=2.0 / 50))


def test_initial_scores_are_not_part_of_predictions(samples, run):
    model = LGBMRegressor(**SMALL).fit(samples.X, samples.y, init_score=np.full(200, 5.0))
    check_model(model, samples.X, run=run)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_and_back(dtype, samples, retrain):
    X = samples.missing.astype(dtype)
    trained = retrain(LGBMClassifier(**SMALL).fit(X, samples.three), X, samples.three, dtype=dtype)
    assert trained.weights_to_train_ == {"leaf_values": "booster_.leaf_outputs"}
    retrain(LGBMRegressor(objective="poisson", **SMALL).fit(X, samples.positive), X, samples.positive)
    retrain(LGBMRegressor(objective="cross_entropy", **SMALL).fit(X, samples.shares), X, samples.shares)


def test_search(samples, search):
    assert search(LGBMRegressor(**SMALL), samples.X, samples.y, num_leaves=[2, 8]) == {"num_leaves": 8}
