"""Boosting of scikit-learn grows its trees on the loss that is asked for."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_friedman1
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import mean_pinball_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer, losses
from ortlearn.boosting.scikit_learn import grows_by_gradients, grows_by_histograms
from ortlearn.boosting.stages import StageObjective
from ortlearn.exceptions import PluginError, WriteBackError

X, Y = make_friedman1(400, noise=1.0, random_state=0)
PAIR = make_classification(300, 6, random_state=0)
GROWS = {
    GradientBoostingRegressor: grows_by_gradients,
    GradientBoostingClassifier: grows_by_gradients,
    HistGradientBoostingRegressor: grows_by_histograms,
    HistGradientBoostingClassifier: grows_by_histograms,
}
REGRESSORS = [
    GradientBoostingRegressor(n_estimators=20, random_state=0),
    HistGradientBoostingRegressor(max_iter=20, random_state=0),
]
CLASSIFIERS = [
    GradientBoostingClassifier(n_estimators=10, random_state=0),
    HistGradientBoostingClassifier(max_iter=10, random_state=0),
]


def grown(model, loss, X, y, sample_weight=None):
    """Return a copy of an estimator that is grown on a loss."""
    model, classifies = clone(model), hasattr(model, "predict_proba")
    objective = StageObjective.of(loss, y, sample_weight, classifies)
    with GROWS[type(model)](model, objective):
        return model.fit(X, y, sample_weight)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", REGRESSORS)
@pytest.mark.parametrize("options", [{}, {"subsample": 0.7}, {"max_features": 0.5}, {"learning_rate": 0.3}])
def test_squared_error_gives_the_fit_of_scikit_learn(model, options, weighted):
    known = model.get_params()
    model = clone(model).set_params(**{name: value for name, value in options.items() if name in known})
    weights = np.linspace(0.5, 2, len(Y)) if weighted else None
    own = clone(model).fit(X, Y, weights)
    found = grown(model, losses.SquaredErrorLoss(), X, Y, weights)
    np.testing.assert_allclose(found.predict(X), own.predict(X), rtol=1e-4)


@pytest.mark.parametrize("model", CLASSIFIERS)
@pytest.mark.parametrize("y", [PAIR[1], PAIR[1] + (PAIR[0][:, 0] > 1)])
def test_log_loss_gives_the_fit_of_scikit_learn(model, y):
    if isinstance(model, GradientBoostingClassifier) and y.max() > 1:
        own = clone(model).set_params(learning_rate=0.15).fit(PAIR[0], y)  # its steps are 2 / 3 of Newton's
    else:
        own = clone(model).fit(PAIR[0], y)
    found = grown(model, losses.LogLoss(), PAIR[0], y)
    np.testing.assert_allclose(found.predict_proba(PAIR[0]), own.predict_proba(PAIR[0]), atol=1e-5)


@pytest.mark.parametrize("model", REGRESSORS)
def test_quantiles_are_those_of_scikit_learn(model):
    known = {"alpha": 0.8} if isinstance(model, GradientBoostingRegressor) else {"quantile": 0.8}
    own = clone(model).set_params(loss="quantile", **known).fit(X[:300], Y[:300])
    found = grown(model, losses.QuantileLoss(0.8), X[:300], Y[:300])
    before, after = (mean_pinball_loss(Y[300:], m.predict(X[300:]), alpha=0.8) for m in (own, found))
    assert after <= 1.05 * before
    assert found.get_params()["loss"] == "squared_error" and pickle.loads(pickle.dumps(found)).n_features_in_


def test_poisson_gives_the_fit_of_histogram_boosting():
    own = HistGradientBoostingRegressor(max_iter=10, loss="poisson").fit(X, np.round(Y.clip(0)))
    found = grown(HistGradientBoostingRegressor(max_iter=10), losses.PoissonLoss(), X, np.round(Y.clip(0)))
    np.testing.assert_allclose(found.predict(X), own.predict(X), rtol=1e-3)


@pytest.mark.slow
def test_early_stopping_and_missing_values_and_categories_hold():
    samples = np.column_stack([X, np.arange(400) % 4])
    samples[::7, 1] = np.nan
    model = HistGradientBoostingRegressor(
        max_iter=300, early_stopping=True, n_iter_no_change=3, categorical_features=[10], random_state=0
    )
    trained = OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(0.7), random_state=0).fit(
        samples, Y
    )
    found = trained.to_sklearn()
    assert found.n_iter_ < 300 and np.any(found.is_categorical_)
    np.testing.assert_allclose(found.predict(samples), trained.predict(samples), rtol=1e-4)
    stopped = GradientBoostingRegressor(n_estimators=300, n_iter_no_change=3, random_state=0)
    assert grown(stopped, losses.HuberLoss(), X, Y).n_estimators_ < 300


@pytest.mark.parametrize("loss", [losses.QuantileLoss(0.7), losses.HuberLoss(0.5)])
def test_monotonic_constraints_hold(loss):
    model = HistGradientBoostingRegressor(max_iter=30, monotonic_cst=[0, 0, 0, -1] + [0] * 6)
    found = OrtGradientOptimizer(model, learning_loss=loss, random_state=0).fit(X, Y)
    steps = np.repeat(X[:20], 50, axis=0)
    steps[:, 3] = np.tile(np.linspace(0, 1, 50), 20)
    assert (np.diff(found.predict(steps).reshape(20, 50), axis=1) <= 1e-6).all()


@pytest.mark.parametrize("model", CLASSIFIERS)
@pytest.mark.parametrize("loss", [losses.FocalLoss(), losses.HingeLoss(), losses.SquaredHingeLoss()])
@pytest.mark.parametrize("data", [PAIR, load_iris(return_X_y=True)])
def test_losses_of_classes_are_grown(model, loss, data):
    samples, y = data
    y = np.array(["a", "b", "c"])[y]
    trained = OrtGradientOptimizer(model, learning_loss=loss, random_state=0).fit(samples, y)
    assert trained.score(samples, y) > 0.9
    np.testing.assert_allclose(
        trained.to_sklearn().decision_function(samples), trained.decision_function(samples), atol=1e-4
    )


@pytest.mark.parametrize("model", REGRESSORS)
def test_labels_of_small_scale_are_learnt(model):
    trained = OrtGradientOptimizer(model, learning_loss="expression: (label - score) ** 4", random_state=0)
    large, small = (trained.fit(X, Y * scale).predict(X) / scale for scale in (1.0, 1e-4))
    np.testing.assert_allclose(small, large, rtol=1e-2)


@pytest.mark.parametrize(
    ("model", "loss", "least"), [(CLASSIFIERS[0], "hinge", 0.65), (CLASSIFIERS[1], "focal", 0.8)]
)
def test_rare_classes_are_learnt(model, loss, least):
    samples, y = make_classification(
        3000, 10, n_informative=6, weights=[0.98], flip_y=0.005, class_sep=1.2, random_state=0
    )
    model = clone(model).set_params(learning_rate=0.4)
    trained = OrtGradientOptimizer(model, learning_loss=loss, random_state=0).fit(samples[:1500], y[:1500])
    assert roc_auc_score(y[1500:], trained.decision_function(samples[1500:])) > least


@pytest.mark.parametrize("loss", [losses.FocalLoss(), losses.LogLoss(), losses.SquaredHingeLoss()])
@pytest.mark.parametrize("counts", [(90, 10), (60, 30, 8, 2)])
def test_initial_scores_are_the_constants_of_lowest_loss(loss, counts):
    y = np.repeat(np.arange(len(counts)), counts)
    objective = StageObjective.of(loss, y, None, True)
    found, near = (
        objective.losses(y, np.tile(objective.baseline + change, (len(y), 1))).sum()
        for change in (0.0, np.eye(len(objective.baseline))[0] * 0.1)
    )
    slopes = objective.gradient(y, np.tile(objective.baseline, (len(y), 1)))
    assert found < near and np.all(np.abs(slopes.sum(axis=0)) < 0.01 * np.abs(slopes).sum(axis=0))


@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS])
@pytest.mark.parametrize("named", [False, True])
def test_the_own_loss_gives_the_own_fit(model, named):
    classifies = hasattr(model, "predict_proba")
    samples, y = PAIR if classifies else (X, Y)
    own = clone(model).fit(samples, y)
    loss = ("log_loss" if classifies else "squared_error") if named else "auto"
    trained = OrtGradientOptimizer(model, learning_loss=loss, random_state=0).fit(samples, y)
    found, expected = trained.to_sklearn().predict(samples), own.predict(samples)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert trained.n_iter_ == 1 and not trained.start_kept_


@pytest.mark.sweep(1)
@pytest.mark.parametrize("model", REGRESSORS)
def test_intervals_cover_new_samples(model):
    samples, y = make_friedman1(1500, noise=1.0, random_state=1)
    model = make_pipeline(StandardScaler(), clone(model)) if model is REGRESSORS[0] else clone(model)
    low, high = (
        OrtGradientOptimizer(model, learning_loss=losses.QuantileLoss(level), random_state=0)
        .fit(samples[:500], y[:500])
        .predict(samples[500:])
        for level in (0.05, 0.95)
    )
    assert 0.86 <= np.mean((low <= y[500:]) & (y[500:] <= high)) <= 0.94


@pytest.mark.slow
def test_class_weights_change_the_trees():
    samples, y = PAIR
    rates = [
        OrtGradientOptimizer(CLASSIFIERS[1], learning_loss="focal", class_weight=weights)
        .fit(samples, y)
        .predict(samples)
        .mean()
        for weights in ({0: 1, 1: 1}, {0: 1, 1: 20})
    ]
    assert rates[1] > rates[0] + 0.05


def test_unsupported_combinations():
    model = GradientBoostingClassifier(loss="exponential", n_estimators=2)
    with pytest.raises(ValueError, match="use loss='log_loss'"):
        OrtGradientOptimizer(model, learning_loss="focal").fit(*PAIR)
    model = GradientBoostingRegressor(init=DummyRegressor(), n_estimators=2)
    with pytest.raises(ValueError, match="requires init=None"):
        OrtGradientOptimizer(model, learning_loss="poisson").fit(X, np.abs(Y))
    with pytest.raises(PluginError, match="is for classification"):
        OrtGradientOptimizer(REGRESSORS[0], learning_loss="log_loss").fit(X, Y)
    trained = OrtGradientOptimizer(REGRESSORS[0], learning_loss="poisson").fit(X, np.abs(Y))
    with pytest.raises(WriteBackError):
        trained.to_sklearn()


@pytest.mark.parametrize(
    ("given", "reason"), [({7: 20}, r"unknown classes \[7\]"), ({0: 0, 1: 0}, "All weights")]
)
def test_class_weights_are_checked_before_trees_are_grown(given, reason):
    trained = OrtGradientOptimizer(CLASSIFIERS[1], learning_loss="focal", class_weight=given)
    with pytest.raises(ValueError, match=reason):
        trained.fit(*PAIR)
