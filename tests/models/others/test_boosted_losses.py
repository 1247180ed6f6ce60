"""XGBoost and CatBoost grow their trees on any loss."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine, make_friedman1
from sklearn.metrics import mean_pinball_loss

from ortlearn import OrtGradientOptimizer, losses
from ortlearn.losses import as_objective

xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")
lightgbm = pytest.importorskip("lightgbm")

X, Y = make_friedman1(1500, noise=1.0, random_state=0)
TRAIN, TEST = slice(None, 500), slice(500, None)
XGB = {"n_estimators": 30, "n_jobs": 1}
CAT = {"iterations": 50, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
#: The tests of this folder have other defaults.
AUTO = {"learning_rate": "auto", "learning_penalty": "auto", "random_state": 0}
MODELS = [(xgboost.XGBRegressor, XGB), (catboost.CatBoostRegressor, CAT)]
RF = {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1, "verbose": -1}
FORESTS = [
    (xgboost.XGBRFRegressor, {"n_estimators": 20}),
    (
        xgboost.XGBRegressor,
        {"n_estimators": 1, "num_parallel_tree": 20, "learning_rate": 1, "subsample": 0.8},
    ),
    (lightgbm.LGBMRegressor, {"n_estimators": 20, **RF}),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore:Failed to import numba"),  # by CatBoost, if it is not installed
    pytest.mark.filterwarnings("ignore:.*XGBRF.*is deprecated"),
]


@pytest.mark.parametrize("name", ["reg:squarederror", "reg:tweedie", "binary:logistic"])
def test_own_losses_of_xgboost_give_the_same_trees(name):
    kinds = {"reg:squarederror": losses.SquaredErrorLoss()}
    kinds |= {"reg:tweedie": losses.TweedieLoss(1.5), "binary:logistic": losses.LogLoss()}
    y = (Y > Y.mean()) if name == "binary:logistic" else np.abs(Y) + 0.1
    data = xgboost.DMatrix(X, y.astype(float))
    # the base scores are those of raw scores of zero
    base = {"reg:squarederror": 0.0, "binary:logistic": 0.5}.get(name, 1.0)
    own = xgboost.train({"objective": name, "base_score": base, "nthread": 1}, data, 10)
    function = as_objective(kinds[name], package="xgboost")
    found = xgboost.train({"base_score": 0.0, "nthread": 1}, data, 10, obj=function)
    expected = own.predict(data, output_margin=True)
    np.testing.assert_allclose(found.predict(data, output_margin=True), expected, rtol=1e-3, atol=1e-3)
    frames = [booster.trees_to_dataframe() for booster in (own, found)]
    assert frames[0]["Feature"].equals(frames[1]["Feature"])


def test_squared_error_of_catboost_gives_the_same_trees():
    options = {**CAT, "learning_rate": 0.1, "boost_from_average": False, "leaf_estimation_method": "Newton"}
    own = catboost.CatBoostRegressor(**options).fit(X, Y)
    function = as_objective("squared_error", package="catboost")
    found = catboost.CatBoostRegressor(**options, loss_function=function, eval_metric="RMSE").fit(X, Y)
    np.testing.assert_allclose(found.predict(X), own.predict(X), rtol=1e-3)


@pytest.mark.parametrize("kind, options", MODELS)
@pytest.mark.parametrize("loss", [losses.QuantileLoss(0.9), losses.HuberLoss(1.0)])
def test_regressors_are_grown(kind, options, loss):
    model = kind(**options)
    given = model.get_params()
    trained = OrtGradientOptimizer(model, learning_loss=loss, **AUTO).fit(X[TRAIN], Y[TRAIN])
    found = trained.to_sklearn()
    assert (
        type(found) is kind
        and found.get_params()["n_jobs" if kind is MODELS[0][0] else "verbose"]
        == (given["n_jobs" if kind is MODELS[0][0] else "verbose"])
    )
    np.testing.assert_allclose(found.predict(X[TEST]), trained.predict(X[TEST]), rtol=1e-3)
    plain = kind(**options).fit(X[TRAIN], Y[TRAIN])
    level = getattr(loss, "quantile", 0.5)
    after, before = (mean_pinball_loss(Y[TEST], m.predict(X[TEST]), alpha=level) for m in (found, plain))
    assert after < before * (0.8 if level > 0.5 else 1.1)


@pytest.mark.parametrize("kind, options", MODELS)
def test_labels_of_large_scale_are_learnt(kind, options):
    model = kind(**options, random_state=0)
    trained = OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(0.9), **AUTO)
    small, large = (trained.fit(X[TRAIN], Y[TRAIN] * scale).predict(X[TEST]) / scale for scale in (1.0, 1e6))
    after, before = (mean_pinball_loss(Y[TEST], found, alpha=0.9) for found in (large, small))
    assert after < 1.1 * before


@pytest.mark.parametrize("kind, options", MODELS)
def test_the_own_loss_gives_the_own_fit(kind, options):
    plain = kind(**options, random_state=0).fit(X[TRAIN], Y[TRAIN])
    trained = OrtGradientOptimizer(kind(**options, random_state=0), **AUTO).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_allclose(trained.predict(X[TEST]), plain.predict(X[TEST]), rtol=1e-4)


def test_a_log_link_is_in_the_onnx_file():
    for kind, options in MODELS:
        trained = OrtGradientOptimizer(kind(**options), learning_loss="poisson", **AUTO).fit(
            X[TRAIN], np.abs(Y[TRAIN])
        )
        assert np.corrcoef(trained.predict(X[TEST]), np.abs(Y[TEST]))[0, 1] > 0.9


def test_classifiers():
    samples, y = load_wine(return_X_y=True)
    trained = OrtGradientOptimizer(xgboost.XGBClassifier(**XGB), learning_loss="focal", **AUTO).fit(
        samples, y
    )
    found = trained.to_sklearn()
    assert found.score(samples, y) > 0.95
    np.testing.assert_allclose(found.predict_proba(samples), trained.predict_proba(samples), atol=1e-4)
    with pytest.raises(ValueError, match="classifier of CatBoost"):
        OrtGradientOptimizer(catboost.CatBoostClassifier(**CAT), learning_loss="focal", **AUTO).fit(
            samples, y
        )


def test_other_names_of_parameters_of_catboost():
    """``objective`` and ``eta`` are ``loss_function`` and ``learning_rate``."""
    losses_of = {}
    for names in (("objective", "eta"), ("loss_function", "learning_rate")):
        model = catboost.CatBoostRegressor(**CAT, **dict(zip(names, ("MAE", 0.1), strict=True)))
        for loss in ("squared_error", "absolute_error"):
            trained = OrtGradientOptimizer(model, learning_loss=loss, **AUTO).fit(X[TRAIN], Y[TRAIN])
            losses_of[names[0], loss] = trained.predict(X[TEST])
        assert model.get_params()[names[0]] == "MAE"
    for loss in ("squared_error", "absolute_error"):
        np.testing.assert_allclose(losses_of["objective", loss], losses_of["loss_function", loss], rtol=1e-5)


@pytest.mark.parametrize("kind, options", FORESTS)
def test_intervals_of_random_forests_cover_new_samples(kind, options):
    model = kind(n_jobs=1, random_state=0, **options)
    low, high = (
        OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(level), **AUTO).fit(X[TRAIN], Y[TRAIN])
        for level in (0.05, 0.95)
    )
    widths = high.predict(X[TEST]) - low.predict(X[TEST])
    assert 0.86 < np.mean((low.predict(X[TEST]) <= Y[TEST]) & (Y[TEST] <= high.predict(X[TEST]))) < 0.96
    assert widths.mean() < 0.75 * np.diff(np.quantile(Y, [0.05, 0.95]))  # better than constants
    found = high.to_sklearn()
    assert found.get_params() == model.get_params()
    np.testing.assert_allclose(found.predict(X[TEST]), high.predict(X[TEST]), rtol=1e-4)


@pytest.mark.parametrize("kind, options", FORESTS)
def test_random_forests_take_logarithms_weights_and_constraints(kind, options):
    model = kind(n_jobs=1, random_state=0, **options)
    weights = np.linspace(0.1, 2, 500)
    trained = OrtGradientOptimizer(model, learning_loss="poisson", **AUTO)
    trained = trained.fit(X[TRAIN], np.abs(Y[TRAIN]), sample_weight=weights)
    assert np.corrcoef(trained.predict(X[TEST]), Y[TEST])[0, 1] > 0.75
    bound = clone(model).set_params(monotone_constraints=(0, 0, 0, -1) + (0,) * 6)
    trained = OrtGradientOptimizer(bound, learning_loss=losses.QuantileLoss(0.8), **AUTO)
    if kind is lightgbm.LGBMRegressor:
        with pytest.raises(ValueError, match="monotonic constraints takes no loss but its own"):
            trained.fit(X[TRAIN], Y[TRAIN])
        return
    steps = np.repeat(X[:20], 50, axis=0)
    steps[:, 3] = np.tile(np.linspace(0, 1, 50), 20)
    found = trained.fit(X[TRAIN], Y[TRAIN]).predict(steps)
    assert (np.diff(found.reshape(20, 50), axis=1) <= 1e-5).all()


PAIRS = np.column_stack([Y, 100 * (Y + X[:, 0])])


@pytest.mark.parametrize("kind", [xgboost.XGBRegressor, xgboost.XGBRFRegressor])
def test_several_outputs_are_grown_as_each_alone(kind):
    model = kind(n_estimators=10, n_jobs=1, random_state=0)
    trained = OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(0.8), **AUTO)
    found = trained.fit(X[TRAIN], PAIRS[TRAIN]).predict(X[TEST])
    assert np.abs((PAIRS[TEST] <= found).mean(axis=0) - 0.8).max() < 0.07
    np.testing.assert_allclose(trained.to_sklearn().predict(X[TEST]), found, rtol=1e-4)
    alone = trained.fit(X[TRAIN], PAIRS[TRAIN, 0]).predict(X[TEST])
    np.testing.assert_allclose(found[:, 0], alone, rtol=1e-4)


@pytest.mark.parametrize("kind", [xgboost.XGBRegressor, xgboost.XGBRFRegressor])
def test_vectors_in_leaves_are_grown(kind):
    model = kind(n_estimators=10, n_jobs=1, random_state=0, multi_strategy="multi_output_tree")
    trained = OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(0.8), **AUTO)
    found = trained.fit(X[TRAIN], PAIRS[TRAIN]).predict(X[TEST])
    assert np.abs((PAIRS[TEST] <= found).mean(axis=0) - 0.8).max() < 0.07
    assert all(np.corrcoef(PAIRS[TEST, i], found[:, i])[0, 1] > 0.7 for i in range(2))
    np.testing.assert_allclose(trained.to_sklearn().predict(X[TEST]), found, rtol=1e-4)


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_several_labels_are_grown(strategy):
    labels = np.column_stack([Y > 14, X[:, 0] > 0.5, np.ones(len(Y))]).astype(int)
    model = xgboost.XGBClassifier(n_estimators=10, n_jobs=1, multi_strategy=strategy)
    trained = OrtGradientOptimizer(model, learning_loss="focal", **AUTO).fit(X[TRAIN], labels[TRAIN])
    assert ((trained.predict(X[TEST]) == labels[TEST]).mean(axis=0) > [0.75, 0.95, 0.99]).all()
    found = trained.to_sklearn().predict_proba(X[TEST])
    np.testing.assert_allclose(found, trained.predict_proba(X[TEST]), atol=1e-5)


class Length(losses.BaseLoss):
    """The length of the residuals, which is not a sum over outputs."""

    def forward(self, op, expected, predicted):
        return op.ReduceL2(op.Sub(predicted, expected), [1], keepdims=0)


def test_several_outputs_that_cannot_be_grown():
    model = catboost.CatBoostRegressor(**CAT, loss_function="MultiRMSE")
    with pytest.raises(ValueError, match="wrap it in MultiOutputRegressor"):
        OrtGradientOptimizer(model, learning_loss="huber", **AUTO).fit(X, PAIRS)
    with pytest.raises(ValueError, match="sums over outputs, which Length is not"):
        OrtGradientOptimizer(xgboost.XGBRegressor(**XGB), learning_loss=Length(), **AUTO).fit(X, PAIRS)
