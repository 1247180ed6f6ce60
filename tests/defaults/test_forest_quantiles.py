"""Warm starts of forests and neighbours with a loss other than their own."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ortlearn import OrtGradientOptimizer
from ortlearn.losses import AbsoluteErrorLoss, QuantileLoss

MODELS = {
    "forest": RandomForestRegressor(10, random_state=0),
    "extra trees": ExtraTreesRegressor(10, min_samples_leaf=3, random_state=0),
    "tree": DecisionTreeRegressor(min_samples_leaf=5, random_state=0),
    "bagging": BaggingRegressor(random_state=0),
    "medians": AdaBoostRegressor(n_estimators=10, random_state=0),
    "neighbours": KNeighborsRegressor(10),
    "pipeline": make_pipeline(StandardScaler(), RandomForestRegressor(10, random_state=0)),
}


def warm_start(fitted, X, y, loss, sample_weight=None, **options):
    options = {"warm_start": True, "random_state": 0, **options}
    return OrtGradientOptimizer(fitted, learning_loss=loss, **options).fit(X, y, sample_weight)


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model, quantile", list(zip(MODELS, [0.1, 0.9] * 4, strict=False)))
def test_quantiles(model, quantile):
    """The default is far better than the old model, and about as good as early stopping or better."""
    X, y = make_friedman1(900, noise=1, random_state=0)
    fitted = MODELS[model].fit(X[:200], y[:200])
    losses = [mean_pinball_loss(y[400:], fitted.predict(X[400:]), alpha=quantile)]
    for options in ({}, {"keep_better": False}):
        trained = warm_start(fitted, X[200:400], y[200:400], QuantileLoss(quantile), **options)
        losses.append(mean_pinball_loss(y[400:], trained.predict(X[400:]), alpha=quantile))
    before, default, stopped = losses
    assert default < 0.7 * before and default < 1.2 * stopped


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shift", [8.0, (8.0, -30.0)], ids=["one output", "two outputs"])
def test_a_shift_moves_leaves_without_new_samples(shift, dtype):
    """New samples have the first feature below 0.5; the labels of all samples have changed by a constant."""
    X, y = make_friedman1(600, noise=1, random_state=0)
    y = y if np.ndim(shift) == 0 else np.stack([y, 3 * y], axis=1)
    fitted = RandomForestRegressor(10, random_state=0).fit(X[:300], y[:300])
    near = np.flatnonzero(X[300:, 0] < 0.5) + 300
    trained = warm_start(fitted, X[near], y[near] + shift, AbsoluteErrorLoss(), dtype=dtype)
    change = trained.predict(X[:300][X[:300, 0] > 0.8]) - fitted.predict(X[:300][X[:300, 0] > 0.8])
    np.testing.assert_allclose(np.median(change, axis=0), shift, rtol=0.15)


def test_labels_with_sample_weights():
    """Only samples with weight decide the shift."""
    X, y = make_friedman1(600, noise=1, random_state=0)
    fitted = RandomForestRegressor(10, random_state=0).fit(X[:300], y[:300])
    weights = np.arange(300) % 2
    labels = y[300:] + np.where(weights, 10.0, -100.0)
    trained = warm_start(fitted, X[300:], labels, AbsoluteErrorLoss(), sample_weight=weights)
    np.testing.assert_allclose(np.median(trained.predict(X) - fitted.predict(X)), 10, rtol=0.1)


def test_losses_of_logarithms():
    """Scores of these losses are logarithms, to which residuals cannot be added."""
    X, y = make_friedman1(300, random_state=0)
    fitted = RandomForestRegressor(10, random_state=0).fit(X[:200], np.log(y[:200] + 1))
    assert np.isfinite(warm_start(fitted, X[200:], y[200:], "poisson").predict(X)).all()


def test_a_tree_has_seen_the_copies_of_its_samples():
    samples, y = make_friedman1(700, noise=2.0, random_state=0)
    copied = np.tile(np.arange(100), 3)
    model = RandomForestRegressor(50, random_state=0)
    trained = OrtGradientOptimizer(model, learning_loss=QuantileLoss(0.9), random_state=0)
    once, thrice = (
        mean_pinball_loss(y[100:], trained.fit(samples[own], y[own]).predict(samples[100:]), alpha=0.9)
        for own in (copied[:100], copied)
    )
    assert thrice < 1.2 * once


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "options", [{"clip_norm": 1.0}, {"average": True}, {"learning_rate": "Adam"}, {"by_parts": True}], ids=str
)
def test_updates_begin_with_quantiles_of_unseen_samples(options):
    X, y = make_friedman1(1000, n_features=5, noise=1, random_state=2)
    by_parts, predicted = options.get("by_parts", False), []
    options = {} if by_parts else {"max_iter": 10, **options}
    for level in (0.05, 0.95):
        forest = RandomForestRegressor(20, random_state=0)
        trainer = OrtGradientOptimizer(forest, learning_loss=QuantileLoss(level), random_state=0, **options)
        trainer.partial_fit(X[:400], y[:400]) if by_parts else trainer.fit(X[:400], y[:400])
        if by_parts:
            trainer.partial_fit(X[400:600], y[400:600])
        predicted.append(trainer.predict(X[600:]))
    assert 0.84 < np.mean((predicted[0] <= y[600:]) & (y[600:] <= predicted[1])) < 0.98


@pytest.mark.parametrize("name", ["forest", "tree", "bagging"])
def test_samples_of_the_fit_in_another_order_are_not_new(name):
    """Which samples a tree has drawn is unknown then: predictions of clones choose a shift."""
    X, y = make_friedman1(1000, 5, noise=1.0, random_state=0)
    fitted, order = MODELS[name].fit(X[:400], y[:400]), np.random.RandomState(0).permutation(350)
    some, levels = (X[order], y[order]), (0.05, 0.95)
    low, high = (warm_start(fitted, *some, QuantileLoss(level)).predict(X[400:]) for level in levels)
    assert 0.85 < ((low <= y[400:]) & (y[400:] <= high)).mean() < 0.97  # as new samples: 0.5
