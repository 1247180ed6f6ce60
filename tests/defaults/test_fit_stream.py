"""fit_stream with default parameters: learning rate, class weights, comparison with the start."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD

OPTIONS = {"learning_rate": 0.1, "batch_size": 16, "max_iter": 3, "random_state": 0}


@pytest.fixture(params=[OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def optimizer(request):
    return request.param


@pytest.fixture(scope="module")
def samples():
    X = np.random.default_rng(0).standard_normal((501, 6)).astype(np.float32)
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.8])]


def cut(size, X, y):
    return lambda: ((X[start : start + size], y[start : start + size]) for start in range(0, len(X), size))


@pytest.mark.slow
@pytest.mark.sweep(1)
def test_automatic_rate_for_any_scale(optimizer, samples):
    """Features drift by five standard deviations, so moments must be computed on all samples."""
    X, _ = samples
    scales = np.array([1e-3, 1, 1e3, 1, 1, 1])
    wide = X * scales + np.linspace(0, 5, len(X))[:, np.newaxis] * scales
    y = (wide / scales) @ np.arange(1, 7) * 1e4 + 3e4
    options = {"batch_size": 16, "max_iter": 100, "random_state": 0}
    found = optimizer(LinearRegression(), **options).fit_stream(cut(20, wide, y), shuffle_buffer=200)
    assert type(found.learning_rate_).__name__ == "LearningRateAdam"
    assert found.score(wide, y) > 0.99
    again = optimizer(LinearRegression(), **options).fit_stream(cut(77, wide, y), shuffle_buffer=200)
    np.testing.assert_array_equal(again.coef_, found.coef_)
    assert again.train_losses_ == found.train_losses_


@pytest.mark.slow
def test_starting_weights_are_kept_if_training_is_worse(optimizer, samples):
    X, y = samples
    fitted = LogisticRegression(C=1e6, max_iter=1000).fit(X, y)
    model = optimizer(fitted, warm_start=True, **{**OPTIONS, "learning_rate": LearningRateSGD(eta0=50.0)})
    with pytest.warns(UserWarning, match="did not improve the model"):
        model.fit_stream(cut(50, X, y), shuffle_buffer=64)
    assert model.start_kept_
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-5)
    options = {**OPTIONS, "learning_rate": 2.0, "max_iter": 30}
    drifted = optimizer(fitted, warm_start=True, **options).fit_stream(cut(50, -X, y), shuffle_buffer=64)
    assert not drifted.start_kept_ and drifted.score(-X, y) > fitted.score(-X, y) + 0.3


def test_class_weight_of_the_model(optimizer, samples):
    X, y = samples
    order = np.argsort(y)
    X, y = X[order], y[order]
    model = LogisticRegression(class_weight="balanced", C=0.1)
    in_memory = optimizer(model, shuffle=False, **OPTIONS).fit(X, y)
    found = optimizer(model, shuffle=False, **OPTIONS).fit_stream(cut(50, X, y), shuffle_buffer=64)
    np.testing.assert_array_equal(found.coef_, in_memory.coef_)
    assert found.train_losses_ == in_memory.train_losses_


def test_no_samples_of_a_source_are_held_out(optimizer, samples):
    from sklearn.neural_network import MLPClassifier

    X, y = samples
    options = {"batch_size": 16, "max_iter": 4, "random_state": 0}
    found = optimizer(MLPClassifier((4,)), **options).fit_stream(cut(50, X, y))
    assert found.n_iter_ == 4 and found.validation_losses_ == []
    with pytest.warns(UserWarning, match="reached max_iter=4 epochs before the validation_loss"):
        found.fit_stream(cut(50, X[:400], y[:400]), source_val=cut(50, X[400:], y[400:]))
    assert len(found.validation_losses_) == 4  # used to select the weights
