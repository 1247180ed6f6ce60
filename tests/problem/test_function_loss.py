"""Losses given as Python functions on arrays."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import LearningRateSGDNesterov
from ortlearn.losses import FunctionLoss
from ortlearn.penalties import L2Penalty

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3)).astype(np.float32)
Y = np.stack([X[:, 0] - X[:, 1], X[:, 2]], axis=1) + 0.1 * RNG.normal(size=(60, 2))
WEIGHTS = RNG.uniform(0.1, 2, size=60)


def half_squares(expected, predicted):
    difference = predicted - expected
    return (difference**2).sum(axis=1) / 2, difference


def logistic(expected, predicted):
    margins = (2 * expected - 1) * predicted
    slopes = -(2 * expected - 1) / (1 + np.exp(margins))
    return np.logaddexp(0, -margins).sum(axis=1), slopes


def pair(model, loss, function, **params):
    params = {"max_iter": 4, "random_state": 0, "batch_size": 8, **params}
    return [
        OrtGradientForwardBackwardOptimizer(model, learning_loss=spec, **params) for spec in (loss, function)
    ]


@pytest.mark.parametrize(
    "dtype, gradient",
    [
        ("float32", "rules"),
        ("float64", "rules"),
        pytest.param("float32", "ort", marks=pytest.mark.needs_training),
    ],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["even", "weighted"])
def test_equal_to_the_built_in_loss(weights, dtype, gradient):
    model = LinearRegression()
    options = {"learning_penalty": L2Penalty(0.01), "learning_rate": LearningRateSGDNesterov(0.02)}
    expected, found = pair(model, "squared_error", half_squares, dtype=dtype, gradient=gradient, **options)
    expected.fit(X, Y, sample_weight=weights, X_val=X, y_val=Y)
    found.fit(X, Y, sample_weight=weights, X_val=X, y_val=Y)
    rtol = 1e-4 if dtype == "float32" else 1e-10
    for name, array in expected.trained_coef_.items():
        np.testing.assert_allclose(found.trained_coef_[name], array, rtol=rtol, atol=1e-6)
    np.testing.assert_allclose(found.train_losses_, expected.train_losses_, rtol=1e-5)
    np.testing.assert_allclose(found.validation_losses_, expected.validation_losses_, rtol=1e-5)
    np.testing.assert_allclose(found.losses(X, Y), expected.losses(X, Y), rtol=1e-4, atol=1e-6)


def test_network_and_partial_fit():
    expected, found = pair(MLPRegressor(hidden_layer_sizes=(4,), max_iter=1), "squared_error", half_squares)
    for trainer in (expected, found):
        for _ in range(3):
            trainer.partial_fit(X, Y)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-3, atol=1e-5)


def test_labels_of_a_classifier():
    y = np.where(Y[:, 0] > 0, "yes", "no")
    expected, found = pair(LogisticRegression(), "log_loss", logistic, learning_rate=0.5)
    np.testing.assert_allclose(found.fit(X, y).losses(X, y), expected.fit(X, y).losses(X, y), rtol=1e-4)
    assert found.score(X, y) == expected.score(X, y) > 0.7


def test_parameters_and_clone():
    trainer = pair(LinearRegression(), "squared_error", half_squares)[1]
    assert clone(trainer).learning_loss is half_squares
    fitted = pickle.loads(pickle.dumps(trainer.fit(X, Y)))
    np.testing.assert_array_equal(fitted.predict(X), trainer.predict(X))
    assert isinstance(fitted.loss_, FunctionLoss)
    np.testing.assert_allclose(fitted.losses(X, Y), trainer.losses(X, Y))


@pytest.mark.parametrize("rate", ["SGD", "LBFGS"])
def test_single_graph_rejects_a_python_loss(rate):
    trainer = OrtGradientOptimizer(LinearRegression(), learning_loss=half_squares, learning_rate=rate)
    with pytest.raises(PluginError, match="OrtGradientForwardBackwardOptimizer"):
        trainer.fit(X, Y)
    assert not hasattr(trainer, "onnx_")


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda y, f: f - y, r"returned ndarray. Return the tuple \(losses, gradient\)"),
        (lambda y, f: ((f - y) ** 2, f - y), "losses of shape .* one loss per sample"),
        (lambda y, f: (half_squares(y, f)[0], (f - y).sum(axis=1)), "gradient of shape"),
    ],
)
def test_invalid_return_values(function, message):
    with pytest.raises(PluginError, match=message):
        pair(LinearRegression(), "squared_error", function)[1].fit(X, Y)
