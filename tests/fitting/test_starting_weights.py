"""Starting weights: warm_start, fresh weights and frozen weights."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.graphs import initializer_arrays
from ortlearn.learning_rates import LearningRateSGD

STILL = LearningRateSGD(eta0=1e-30)


def test_warm_start_from_the_model_then_from_the_solution(optimizer, diabetes):
    X, y = diabetes
    model = Ridge().fit(X[::2], y[::2])
    trained = optimizer(model, learning_rate=STILL, warm_start=True, max_iter=1).fit(X, y)
    np.testing.assert_allclose(trained.trained_coef_["coef"].ravel(), model.coef_, rtol=1e-6)
    trained.set_params(learning_rate=0.01, max_iter=5, random_state=0).fit(X, y)
    first = {name: array.copy() for name, array in trained.trained_coef_.items()}
    assert np.abs(first["coef"].ravel() - model.coef_).max() > 0.1
    trained.set_params(learning_rate=STILL).fit(X, y)
    for name, array in first.items():
        np.testing.assert_array_equal(trained.trained_coef_[name], array)
    losses = [trained.set_params(learning_rate=0.01).fit(X, y).losses(X, y).mean() for _ in range(2)]
    assert losses[1] <= losses[0] * 1.01


def test_warm_start_fits_an_unfitted_estimator(optimizer, diabetes):
    X, y = diabetes
    trained = optimizer(LinearRegression(), learning_rate=STILL, warm_start=True, max_iter=1).fit(X, y)
    expected = LinearRegression().fit(X, y)
    np.testing.assert_allclose(trained.trained_coef_["coef"].ravel(), expected.coef_, rtol=1e-5)
    np.testing.assert_allclose(trained.score(X, y), expected.score(X, y), rtol=1e-5)


def test_fresh_weights(optimizer, wine):
    X, y = wine
    model = MLPClassifier(hidden_layer_sizes=(50,), max_iter=2, random_state=0)
    trained = optimizer(model, learning_rate=STILL, max_iter=1, random_state=0).fit(X, y)
    for name, fans in {"coefs_0": 63, "coefs_1": 53}.items():
        bound, array = np.sqrt(6 / fans), trained.trained_coef_[name]
        assert 0.9 * bound < np.abs(array).max() <= bound
        assert abs(array.mean()) < bound / 5
    for name in ("intercepts_0", "intercepts_1"):
        assert np.abs(trained.trained_coef_[name]).max() < 1e-25  # zero plus a very small step
    before = trained.trained_coef_["coefs_0"]
    assert (trained.set_params(random_state=1).fit(X, y).trained_coef_["coefs_0"] != before).any()


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    "patterns, expected",
    [
        ("coefs_1", ["coefs_1"]),
        (["coefs_1", "intercepts_1"], ["coefs_1", "intercepts_1"]),
        ("intercept*", ["intercepts_0", "intercepts_1"]),
        (("*_1",), ["coefs_1", "intercepts_1"]),
    ],
)
def test_weights_to_train_freezes_other_weights(warm_start, patterns, expected, optimizer, wine, fit_quietly):
    X, y = wine
    model = make_pipeline(
        StandardScaler(), MLPClassifier(hidden_layer_sizes=(6,), max_iter=3, random_state=0)
    )
    fit_quietly(model, X, y)
    options = {"random_state": 0, "warm_start": warm_start}
    start = optimizer(model, learning_rate=STILL, max_iter=1, warm_start=True).fit(X, y)
    begin = initializer_arrays(start.onnx_)
    trained = optimizer(model, patterns, learning_rate=0.1, max_iter=3, **options).fit(X, y)
    assert sorted(trained.weights_to_train_) == sorted(trained.trained_coef_) == sorted(expected)
    after = initializer_arrays(trained.onnx_)
    assert after.keys() == begin.keys()
    for name, array in after.items():
        if name in expected:
            assert (array != begin[name]).any()
            np.testing.assert_array_equal(array, trained.trained_coef_[name])
        else:
            assert array.tobytes() == begin[name].tobytes()
