"""Networks and ridges of several columns, as scikit-learn computes them."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, RidgeClassifier, RidgeClassifierCV
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn.conversion import sklearn_to_onnx, to_trainable

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)).astype(np.float32).astype(np.float64)
LABELS = (X[:, :2] + 0.5 * RNG.normal(size=(60, 2)) > 0).astype(int)
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0])).astype(float)


def fitted(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize(
    "name, y",
    [("squared_error", COUNTS), ("squared_error", np.stack([COUNTS, X[:, 1]], 1)), ("poisson", COUNTS)],
    ids=["one target", "two targets", "counts"],
)
def test_regression(activation, name, y, dtype, run_onnx):
    model = fitted(MLPRegressor(name, (4, 3), activation=activation, max_iter=20, random_state=0), y)
    values = run_onnx(sklearn_to_onnx(model, 3, dtype), X.astype(dtype))[0]
    tolerance = 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(values, model.predict(X).reshape(60, -1), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        MLPClassifier((4, 3), max_iter=20, random_state=0),
        RidgeClassifier(),
        RidgeClassifier(fit_intercept=False),
        RidgeClassifierCV(),
    ],
    ids=["network", "ridge", "no intercept", "cross-validated"],
)
def test_two_labels(model, dtype, run_onnx):
    model = fitted(model, LABELS)
    labels, scores = run_onnx(sklearn_to_onnx(model, 3, dtype), X.astype(dtype))
    np.testing.assert_array_equal(labels, model.predict(X))
    expected = getattr(model, "predict_proba", getattr(model, "decision_function", None))(X)
    np.testing.assert_allclose(scores, expected, atol=1e-12 if dtype == np.float64 else 1e-5)
    head = to_trainable(model).head
    assert (head.task, head.n_outputs, head.groups) == ("multilabel", 2, (1, 1))


def test_opposite_targets_are_two():
    model = fitted(LinearRegression(), np.stack([X[:, 0], -X[:, 0]], axis=1))
    model.coef_[0] = -model.coef_[1]
    model.intercept_[:] = 0
    assert to_trainable(model).head.n_outputs == 2
    shapes = {array.shape for array in to_trainable(model).initial_weights().values()}
    assert shapes == {(3, 2), (2,)} or shapes == {(3, 2), (1, 2)}
