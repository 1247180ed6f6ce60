"""Averaged weights and clipped gradients, as parameters of the estimators."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge, SGDRegressor
from sklearn.neural_network import MLPRegressor

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD
from tests.pairwise import pairwise

CONSTANT = LearningRateSGD(eta0=0.01, learning_rate="constant")


def trained(model):
    """Return coefficients and intercept."""
    arrays = model.trained_coef_
    return np.append(np.ravel(arrays["coef"]), np.ravel(arrays["intercept"]))


@pytest.mark.parametrize("average", [True, 300, 1000])
def test_averages_equal_scikit_learns(average, optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"learning_rate": "constant", "eta0": 0.01, "alpha": 0.0, "shuffle": False, "tol": None}
    expected = SGDRegressor(average=average, max_iter=2, **options).fit(X, y)
    start = SGDRegressor(max_iter=1, **options).fit(X[:1], 0 * y[:1])
    assert not np.any(start.coef_)
    model = optimizer(
        start, warm_start=True, learning_rate=CONSTANT, batch_size=1, average=average, dtype="float64"
    )
    model.set_params(max_iter=2, shuffle=False).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9, atol=1e-12)


def test_mean_of_epochs(optimizer, diabetes_units):
    """With one batch per epoch, the mean over updates is a mean over epochs."""
    X, y = diabetes_units
    options = {"batch_size": 1000, "learning_rate": 0.3, "random_state": 0}
    ends = [trained(optimizer(LinearRegression(), max_iter=n, **options).fit(X, y)) for n in range(1, 6)]
    model = optimizer(LinearRegression(), max_iter=5, average=True, **options).fit(X, y)
    np.testing.assert_allclose(trained(model), np.mean(ends, axis=0), rtol=1e-5, atol=1e-6)
    late = optimizer(LinearRegression(), max_iter=5, average=3 * len(X), **options).fit(X, y)
    np.testing.assert_allclose(trained(late), np.mean(ends[2:], axis=0), rtol=1e-5, atol=1e-6)
    never = optimizer(LinearRegression(), max_iter=5, average=10**6, **options).fit(X, y)
    np.testing.assert_allclose(trained(never), ends[-1], rtol=1e-6)


def test_partial_fit_continues_from_weights_that_are_not_averaged(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"average": True, "learning_rate": "Adam", "shuffle": False, "random_state": 0}
    whole = optimizer(LinearRegression(), max_iter=3, **options).fit(X, y)
    parts = optimizer(LinearRegression(), **options)
    for _ in range(3):
        parts.partial_fit(X, y)
    np.testing.assert_array_equal(trained(parts), trained(whole))
    plain = optimizer(LinearRegression(), max_iter=3, **{**options, "average": False}).fit(X, y)
    parts.set_params(average=False).partial_fit(X, y)
    np.testing.assert_array_equal(trained(parts), trained(plain.partial_fit(X, y)))


@pytest.mark.sweep(14)
@pairwise(
    indirect=["optimizer"],
    average=[1, 300, 301, 443, 800, 5000],
    chunks=[[442], [20, 100, 7, 315], [442, 442]],
    optimizer=["one_graph", "two_calls"],
)
def test_averaging_begins_at_a_sample(average, chunks, optimizer, diabetes_units):
    """Samples are counted over short batches and calls."""
    X, y = diabetes_units
    size = 150
    model = optimizer(Ridge(), learning_rate=CONSTANT, batch_size=size, shuffle=False, dtype="float64")
    model.set_params(random_state=0, average=average)
    weights, seen, kept, start = None, 0, [], 0
    for length in chunks:
        part = np.arange(start, start + length) % len(X)
        start += length
        if weights is None:
            first = optimizer(Ridge(), learning_rate=1e-300, dtype="float64", random_state=0)
            weights = trained(first.partial_fit(X[part], y[part]))
        model.partial_fit(X[part], y[part])
        for begin in range(0, length, size):
            batch = part[begin : begin + size]
            samples = np.hstack([X[batch], np.ones((len(batch), 1))])
            weights = weights - 0.01 * samples.T @ (samples @ weights - y[batch]) / len(batch)
            seen += len(batch)
            if seen >= average:
                kept.append(weights)
    expected = np.mean(kept, axis=0) if kept else weights
    np.testing.assert_allclose(trained(model), expected, rtol=1e-9, atol=1e-12)


def test_averaging_begins_in_a_short_batch(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"learning_rate": CONSTANT, "batch_size": 300, "shuffle": False, "dtype": "float64"}
    parts = optimizer(Ridge(), average=443, random_state=0, **options)
    for _ in range(3):
        parts.partial_fit(X, y)
    whole = optimizer(Ridge(), average=443, random_state=0, max_iter=3, **options).fit(X, y)
    np.testing.assert_allclose(trained(parts), trained(whole), rtol=1e-12)
    other = optimizer(Ridge(), average=442, random_state=0, max_iter=3, **options).fit(X, y)
    assert not np.allclose(trained(other), trained(whole), rtol=1e-6)


def test_warm_start_continues_from_weights_that_are_not_averaged(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"shuffle": False, "random_state": 0, "warm_start": True, "max_iter": 2}
    plain = optimizer(LinearRegression(), learning_rate=0.001, **options).fit(X, y)
    model = optimizer(LinearRegression(), learning_rate=0.001, average=True, **options).fit(X, y)
    assert not np.array_equal(trained(plain), trained(model))
    model.set_params(average=False).fit(X, y)
    np.testing.assert_array_equal(trained(model), trained(plain.fit(X, y)))


def test_validation_uses_the_averages(optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(LinearRegression(), average=True, max_iter=3, validation_every=1, random_state=0)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    np.testing.assert_allclose(model.validation_losses_[-1], model.losses(X[300:], y[300:]).mean(), rtol=1e-6)


@pytest.mark.slow
def test_averages_are_kept_with_the_best_epoch(optimizer, diabetes_units):
    X, y = diabetes_units
    network = MLPRegressor(hidden_layer_sizes=(16,), max_iter=1, random_state=0)
    options = {"average": True, "learning_rate": 0.05, "batch_size": 20, "random_state": 0}
    model = optimizer(network, early_stopping=True, n_iter_no_change=3, max_iter=1000, **options)
    model.fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:])
    again = optimizer(network, max_iter=model.best_epoch_, **options).fit(X[:60], y[:60])
    for name, array in again.trained_coef_.items():
        np.testing.assert_array_equal(array, model.trained_coef_[name])


@pytest.mark.parametrize(
    "clip", [{"clip_norm": 0.5}, {"clip_value": 0.1}, {"clip_value": 0.1, "clip_norm": 0.2}]
)
def test_clipped_gradients(clip, optimizer, diabetes_units):
    X, y = diabetes_units
    base = LinearRegression().fit(X[:5], y[:5])
    weights = np.append(base.coef_, base.intercept_)
    samples = np.hstack([X, np.ones((len(X), 1))])
    for _ in range(2):
        for start in range(0, len(X), 50):
            part, labels = samples[start : start + 50], y[start : start + 50]
            gradient = part.T @ (part @ weights - labels) / len(part)
            if "clip_value" in clip:
                gradient = np.clip(gradient, -clip["clip_value"], clip["clip_value"])
            if "clip_norm" in clip:
                gradient *= min(1.0, clip["clip_norm"] / np.linalg.norm(gradient))
            weights = weights - 0.01 * gradient
    options = {"learning_rate": CONSTANT, "batch_size": 50, "shuffle": False, "warm_start": True}
    model = optimizer(base, max_iter=2, dtype="float64", **options, **clip).fit(X, y)
    np.testing.assert_allclose(trained(model), weights, rtol=1e-5)


def test_clipping_prevents_divergence(optimizer, diabetes_units):
    X, y = diabetes_units
    labels = np.where(np.arange(len(y)) == 7, 1e8, y)
    model = optimizer(LinearRegression(), learning_rate=0.01, max_iter=20, random_state=0)
    wild = model.fit(X, labels).losses(X[8:], y[8:]).mean()
    calm = model.set_params(clip_norm=1.0).fit(X, labels).losses(X[8:], y[8:]).mean()
    assert calm < 0.5 < wild


@pytest.mark.parametrize("wrong", [{"clip_norm": 0.0}, {"clip_value": -1}, {"average": -1}, {"average": 0.5}])
def test_invalid_combinations_are_rejected(wrong, diabetes_units):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        OrtGradientOptimizer(LinearRegression(), **wrong).fit(*diabetes_units)
