"""State kept between calls, as in docs/explanation/state_between_calls.md.

Other rows of its table are tested in test_starting_weights, test_schedules, test_averaging_and_clipping and
test_history.
"""

import numpy as np
import pytest
from onnx import numpy_helper
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.learning_rates import LearningRateSGD, LearningRateSGDNesterov

SMALL = {"learning_rate": 0.005, "random_state": 0}


def arrays(model):
    return {name: array.copy() for name, array in model.trained_coef_.items()}


def equal(one, other):
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.fixture
def samples(diabetes_units):
    return diabetes_units[0][:200], diabetes_units[1][:200]


def test_first_partial_fit_equals_fit(optimizer, samples):
    X, y = samples
    for warm_start in (False, True):
        options = {**SMALL, "warm_start": warm_start, "max_iter": 1}
        fitted = optimizer(LinearRegression(), **options).fit(X, y)
        assert equal(arrays(fitted), arrays(optimizer(LinearRegression(), **options).partial_fit(X, y)))


def test_frozen_weights(optimizer, samples):
    X, y = samples
    base = make_pipeline(StandardScaler(), Ridge()).fit(X + 3, y)
    for train in ("fit", "partial_fit"):
        model = optimizer(base, max_iter=2, **SMALL)
        getattr(model, train)(X, y)
        means = base.named_steps["standardscaler"].mean_.astype(np.float32)
        found = [t for t in model.onnx_.graph.initializer if t.dims == [1, 10] or t.dims == [10]]
        values = [np.ravel(numpy_helper.to_array(tensor)) for tensor in found]
        assert any(np.array_equal(value, means) for value in values)


@pytest.mark.parametrize("rate", ["Adam", "Momentum"])
def test_state_of_the_update(rate, optimizer, samples):
    """The second call shows whether the state was kept."""
    X, y = samples
    rate = LearningRateSGDNesterov(eta0=0.01, nesterov=False) if rate == "Momentum" else rate
    options = {"learning_rate": rate, "shuffle": False, "random_state": 0, "warm_start": True, "max_iter": 1}
    base = LinearRegression().fit(X[:5], y[:5])
    twice = optimizer(base, **{**options, "max_iter": 2}).fit(X, y)
    stream = optimizer(base, **options).fit(X, y).partial_fit(X, y)
    assert equal(arrays(stream), arrays(twice))
    restarted = optimizer(base, **options).fit(X, y).fit(X, y)
    assert not equal(arrays(restarted), arrays(twice))


def test_epoch_of_the_schedule(optimizer, samples):
    rate = LearningRateSGD(eta0=0.01, learning_rate="invscaling", power_t=1.0)
    model = optimizer(LinearRegression(), learning_rate=rate, max_iter=2, random_state=0, warm_start=True)

    def rates():
        return [record["rate"] for record in model.history_]

    expected = [rate.rate(epoch) for epoch in range(4)]
    assert len(set(expected)) == 4
    model.fit(*samples)
    assert rates() == expected[:2]
    model.partial_fit(*samples).partial_fit(*samples)
    assert rates() == expected
    model.fit(*samples)
    assert rates() == expected[:2]


def test_order_of_samples(optimizer, samples):
    options = {**SMALL, "max_iter": 1}
    whole = optimizer(LinearRegression(), **{**options, "max_iter": 2}).fit(*samples)
    stream = optimizer(LinearRegression(), **options).fit(*samples).partial_fit(*samples)
    assert equal(arrays(stream), arrays(whole))
    twice = optimizer(LinearRegression(), **options, warm_start=True).fit(*samples).fit(*samples)
    once = optimizer(LinearRegression(), **{**options, "max_iter": 2}, warm_start=True).fit(*samples)
    assert not equal(arrays(twice), arrays(once))  # the second call has the order of the first


@pytest.mark.parametrize(
    "change",
    [
        {"learning_loss": "absolute_error"},
        {"learning_penalty": "l2"},
        {"learning_rate": 0.02},
        {"clip_norm": 0.01},
        {"batch_size": 50},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_changed_parameters_are_used(change, call, optimizer, samples):
    options = {**SMALL, "warm_start": True, "max_iter": 1, "shuffle": False}
    same = optimizer(LinearRegression(), **options).fit(*samples)
    changed = optimizer(LinearRegression(), **options).fit(*samples).set_params(**change)
    getattr(same, call)(*samples)
    getattr(changed, call)(*samples)
    assert not equal(arrays(same), arrays(changed))


def test_classes_and_columns_of_the_first_call(optimizer, wine):
    X, y = wine
    model = optimizer(LogisticRegression(), **SMALL).partial_fit(X, y)
    model.partial_fit(X[:50], np.minimum(y[:50], 1))
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5], y)
    with pytest.raises(ValueError, match="balanced"):
        model.set_params(class_weight="balanced").partial_fit(X, y)


def test_fit_with_another_estimator_and_other_columns(optimizer, wine):
    X, y = wine
    model = optimizer(LogisticRegression(), max_iter=1, **SMALL).fit(X, y)
    model.set_params(estimator=Ridge(), dtype="float64").fit(X[:, :4], y)
    assert model.n_features_in_ == 4
    assert not hasattr(model, "classes_")
    assert model.trained_coef_["coef"].dtype == np.float64


def test_warm_start_requires_the_same_shapes(optimizer, wine):
    X, y = wine
    model = optimizer(Ridge(), max_iter=1, warm_start=True, **SMALL).fit(X, y)
    before = arrays(model)
    with pytest.raises(ValueError, match="other shapes"):
        model.fit(X[:, :4], y)
    assert equal(before, arrays(model))
