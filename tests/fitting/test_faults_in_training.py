"""Losses and scorers that raise during training, or overwrite their arguments, have no side effects."""

import numpy as np
import pytest
from onnx import parser
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from ortlearn import OrtGradientForwardBackwardOptimizer

X = np.random.RandomState(0).normal(size=(60, 3)).astype(np.float32)
Y = X[:, 0] - X[:, 1]


class Loss:
    """Half squared error that raises an error at one of its calls."""

    def __init__(self, error=None, call=0):
        self.error, self.call, self.calls = error, call, 0

    def __call__(self, expected, predicted):
        self.calls += 1
        if self.error is not None and self.calls == self.call:
            raise self.error("in the middle")
        difference = predicted - expected
        return (difference**2).sum(axis=1) / 2, difference


def squares_in_place(expected, predicted):
    """Return half squared errors, computed in place."""
    predicted -= expected
    expected[:] = np.nan
    return (predicted**2).sum(axis=1) / 2, predicted


class Scorer:
    """Scorer that raises an error at its second call."""

    calls = 0

    def __call__(self, estimator, X, y):
        self.calls += 1
        if self.calls == 2:
            raise ZeroDivisionError("in the middle")
        return 0.5


ERRORS = [ValueError, KeyboardInterrupt, SystemExit, MemoryError, StopIteration]


#: Except an interrupt of fit after the first epoch, whose weights are kept.
CALLS = [
    (call, error, method)
    for call in (1, 5)  # calls 2 and 3 check the gradient, and may fail
    for error in ERRORS
    for method in ("fit", "partial_fit")
    if (call, error, method) != (5, KeyboardInterrupt, "fit")
]


@pytest.mark.sweep(11)
@pytest.mark.parametrize("call, error, method", CALLS)
def test_error_in_a_loss(call, error, method, unchanged):
    settings = {"max_iter": 4, "random_state": 0, "batch_size": 8}
    fitted = OrtGradientForwardBackwardOptimizer(LinearRegression(), learning_loss=Loss(), **settings).fit(
        X, Y
    )
    expected = getattr(clone(fitted).fit(X, Y), method)(X, Y).trained_coef_

    def fails():
        good, fitted.learning_loss = fitted.learning_loss, Loss(error, call)
        with pytest.raises(error, match="in the middle"):
            getattr(fitted, method)(X, Y)
        fitted.learning_loss = good

    unchanged(fitted, X, fails)
    for name, array in getattr(fitted, method)(X, Y).trained_coef_.items():
        np.testing.assert_array_equal(array, expected[name])


def test_error_in_a_scorer(optimizer, unchanged):
    settings = {"max_iter": 6, "random_state": 0, "validation_every": 2}
    fitted = optimizer(LinearRegression(), **settings).fit(X, Y, X_val=X, y_val=Y)

    def fails():
        fitted.scoring = Scorer()
        with pytest.raises(ZeroDivisionError):
            fitted.fit(X, Y, X_val=X, y_val=Y)
        fitted.scoring = "loss"

    unchanged(fitted, X, fails)


@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
def test_loss_in_place(gradient):
    """The gradient of Exp reads its output, which is the argument of the loss."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,3] x) => (float[N,1] score) <float[3,1] w = {0.1, 0.2, 0.3}>
        { product = MatMul (x, w) score = Exp (product) }""")
    X_before, y = X.copy(), Y.reshape(-1, 1).astype(np.float32)
    y_before = y.copy()
    found = []
    for loss in ("squared_error", squares_in_place):
        trained = OrtGradientForwardBackwardOptimizer(
            model,
            learning_loss=loss,
            max_iter=3,
            random_state=0,
            warm_start=True,
            gradient=gradient,
            learning_rate=0.05,
        ).fit(X, y, X_val=X, y_val=y)
        found.append(trained)
    np.testing.assert_allclose(found[1].trained_coef_["w"], found[0].trained_coef_["w"], rtol=1e-4)
    np.testing.assert_allclose(found[1].validation_losses_, found[0].validation_losses_, rtol=1e-4)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


def test_interrupt_keeps_the_last_weights():
    settings = {"max_iter": 4, "random_state": 0, "batch_size": 8}
    kind = OrtGradientForwardBackwardOptimizer
    whole = kind(LinearRegression(), learning_loss=Loss(), **settings).fit(X, Y)
    trainer = kind(LinearRegression(), learning_loss=Loss(KeyboardInterrupt, 5), **settings)
    with pytest.raises(KeyboardInterrupt, match="in the middle"):
        trainer.fit(X, Y)
    assert np.isfinite(trainer.predict(X)).all()
    trainer.set_params(learning_loss=Loss()).fit(X, Y, resume_from=trainer)
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(trainer.trained_coef_[name], array)
