"""Estimators of CatBoost, whose splits compare float32 values."""

import pickle

import numpy as np
import pandas as pd
import pytest

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.losses import HuberLoss, LogLoss, QuantileLoss, TweedieLoss
from ortlearn.models import objective_of
from ortlearn.penalties import L2Penalty
from ortlearn.testing import check_model, check_objective

catboost = pytest.importorskip("catboost")
from catboost import CatBoostClassifier, CatBoostRegressor  # noqa: E402

SMALL = {"iterations": 3, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
TEXTS = np.array(["low", "mid", "top"])


@pytest.mark.parametrize(
    "loss",
    [
        *("RMSE", "MAE", "MAPE", "LogCosh", "Poisson", "Quantile:alpha=0.7", "Expectile:alpha=0.3"),
        *("Tweedie:variance_power=1.5", "Huber:delta=1.5", "MultiQuantile:alpha=0.1,0.9"),
    ],
)
def test_losses(loss, samples, run):
    model = CatBoostRegressor(loss_function=loss, **SMALL).fit(samples.missing, samples.positive)
    check_model(model, samples.missing[:80], run=run)


@pytest.mark.parametrize("params", [{}, {"nan_mode": "Max"}, {"depth": 1}, {"iterations": 1}], ids=str)
def test_regressor(params, samples, run):
    model = CatBoostRegressor(**{**SMALL, **params}).fit(samples.missing, samples.y)
    check_model(model, samples.missing[:80], run=run)


def test_several_outputs(samples, run, retrain):
    y = np.column_stack([samples.y, -2 * samples.y])
    model = CatBoostRegressor(loss_function="MultiRMSE", **SMALL).fit(samples.missing, y)
    check_model(model, samples.missing[:80], run=run)
    retrain(model, samples.missing, y)


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
def test_classes(loss, samples, run, retrain):
    y = TEXTS[samples.three]
    model = CatBoostClassifier(loss_function=loss, **SMALL).fit(samples.missing, y)
    check_model(model, samples.missing[:80], run=run)
    retrain(model, samples.missing, y)


def test_two_classes(samples, run, retrain):
    y = TEXTS[samples.two]
    model = CatBoostClassifier(**SMALL).fit(samples.missing, y)
    check_model(model, samples.missing[:80], run=run)
    retrain(model, samples.missing, y)


def test_scores_are_raw_values(samples, scores_of):
    for y in (samples.two, samples.three):
        model = CatBoostClassifier(**SMALL).fit(samples.missing, y)
        found = scores_of(model, samples.missing)
        expected = model.predict(samples.missing, prediction_type="RawFormulaVal")
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-9)


def test_several_labels(samples, run):
    y = np.column_stack([samples.two, samples.X[:, 0] > 0]).astype(int)
    model = CatBoostClassifier(loss_function="MultiLogloss", **SMALL).fit(samples.missing, y)
    check_model(model, samples.missing[:80], run=run)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_and_back(dtype, samples, retrain):
    X = samples.missing.astype(dtype)
    model = CatBoostRegressor(**SMALL).fit(X, samples.y)
    trained = retrain(pickle.loads(pickle.dumps(model)), X, samples.y, dtype=dtype)
    assert trained.weights_to_train_ == {"leaf_values": "leaf_values", "base_values": "bias"}
    assert trained.to_sklearn().n_features_in_ == 4


def test_scaled_sums(samples, run):
    model = CatBoostRegressor(**SMALL).fit(samples.missing, samples.y)
    model.set_scale_and_bias(2.0, 1.0)
    check_model(pickle.loads(pickle.dumps(model)), samples.missing[:80], run=run)


@pytest.mark.parametrize(
    "model, labels, message",
    [
        (CatBoostRegressor(grow_policy="Lossguide", **SMALL), "y", "symmetric trees only"),
        (CatBoostRegressor(loss_function="RMSEWithUncertainty", **SMALL), "y", "is not supported"),
        (CatBoostClassifier(loss_function="CrossEntropy", **SMALL), "shares", "is not supported"),
    ],
    ids=["trees", "uncertainty", "shares"],
)
def test_unsupported_models_are_refused(model, labels, message, samples):
    fitted = model.fit(samples.X, getattr(samples, labels))
    with pytest.raises(ConversionError, match=message):
        OrtGradientOptimizer(fitted, warm_start=True).fit(samples.X, samples.two)


def test_categories_are_refused(samples):
    X = pd.DataFrame(samples.X).assign(c=TEXTS[samples.three])
    model = CatBoostRegressor(cat_features=["c"], **SMALL).fit(X.rename(columns=str), samples.y)
    with pytest.raises(ConversionError, match="X has text"):
        OrtGradientOptimizer(model, warm_start=True).fit(X.rename(columns=str), samples.y)
    whole = X.assign(c=samples.three).rename(columns=str)
    model = CatBoostRegressor(cat_features=["c"], **SMALL).fit(whole, samples.y)
    with pytest.raises(ConversionError, match="features that are not numeric"):
        OrtGradientOptimizer(model, warm_start=True).fit(whole, samples.y)


def test_another_threshold_is_refused(samples):
    model = CatBoostClassifier(**SMALL).fit(samples.X, samples.two)
    model.set_probability_threshold(0.3)
    with pytest.raises(ConversionError, match="FixedThresholdClassifier"):
        OrtGradientOptimizer(model, warm_start=True).fit(samples.X, samples.two)


def test_a_single_tree_minimises_the_objective(samples, run):
    params = {**SMALL, "iterations": 1, "learning_rate": 1.0, "boost_from_average": False, "l2_leaf_reg": 3.0}
    params |= {"bootstrap_type": "No", "leaf_estimation_method": "Newton"}
    X, y, names = samples.X, samples.y, {"leaf_values"}
    check_objective(CatBoostRegressor(**params).fit(X, y), X, y, run=run, names=names)
    low = CatBoostRegressor(**params).fit(X, y - 0.3)
    with pytest.raises(AssertionError, match="falls along"):
        check_objective(low, X, y, run=run, names=names)


@pytest.mark.parametrize(
    "model, labels, loss",
    [
        (CatBoostRegressor(loss_function="Quantile:alpha=0.2"), "y", QuantileLoss(0.2)),
        (CatBoostRegressor(loss_function="Huber:delta=1.5"), "y", HuberLoss(1.5)),
        (CatBoostRegressor(loss_function="Tweedie:variance_power=1.2"), "positive", TweedieLoss(1.2)),
        (CatBoostRegressor(loss_function="MAPE"), "y", None),
        (CatBoostClassifier(), "three", LogLoss()),
        (CatBoostClassifier(auto_class_weights="Balanced"), "two", None),
    ],
)
def test_objective(model, labels, loss, samples):
    fitted = model.copy().set_params(**SMALL).fit(samples.X, getattr(samples, labels))
    found = objective_of(fitted, 200)
    assert repr(None if found is None else found.loss) == repr(loss)


def test_penalty_of_leaves(samples):
    model = CatBoostRegressor(l2_leaf_reg=2.0, learning_rate=0.5, **SMALL).fit(samples.X, samples.y)
    assert repr(objective_of(model, 100).penalty) == repr(L2Penalty(2.0 / 50))


def test_search(samples, search):
    assert search(CatBoostRegressor(**SMALL), samples.X, samples.y, depth=[1, 4]) == {"depth": 4}
