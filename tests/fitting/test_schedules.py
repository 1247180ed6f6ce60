"""Schedules and updates in both estimators: continued trainings, searches, and kept states."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor

from ortlearn.learning_rates import (
    AdaptiveSchedule,
    CosineSchedule,
    LearningRateAdagrad,
    LearningRateAdam,
    LearningRateAdamW,
    LearningRateRMSprop,
    LearningRateSGD,
    LearningRateSGDNesterov,
    OneCycleSchedule,
    WarmUpSchedule,
)

REACTING = [
    AdaptiveSchedule(tol=0.5, patience=1),
    WarmUpSchedule(epochs=2, then=AdaptiveSchedule(tol=0.5, patience=1)),
]


@pytest.mark.parametrize("schedule", [*REACTING, OneCycleSchedule(epochs=5)], ids=lambda s: type(s).__name__)
def test_calls_equal_one_fit(schedule, optimizer, diabetes_units):
    X, y = diabetes_units
    rate = LearningRateSGDNesterov(eta0=0.02, learning_rate=schedule)
    options = {"learning_rate": rate, "random_state": 0}
    whole = optimizer(MLPRegressor(hidden_layer_sizes=(4,)), max_iter=5, **options).fit(X, y)
    steps = optimizer(MLPRegressor(hidden_layer_sizes=(4,)), **options)
    for number in range(5):
        steps.partial_fit(X, y)
        if number == 2:
            steps = pickle.loads(pickle.dumps(steps))
    half = optimizer(MLPRegressor(hidden_layer_sizes=(4,)), max_iter=3, **options).fit(X, y)
    for _ in range(2):
        half.partial_fit(X, y)
    for name, array in whole.trained_coef_.items():
        np.testing.assert_array_equal(steps.trained_coef_[name], array)
        np.testing.assert_array_equal(half.trained_coef_[name], array)
    assert repr(rate) == repr(clone(rate)) and vars(rate).keys() == vars(clone(rate)).keys()
    constant = clone(rate).set_params(learning_rate="constant")
    other = optimizer(
        MLPRegressor(hidden_layer_sizes=(4,)), max_iter=5, learning_rate=constant, random_state=0
    ).fit(X, y)
    assert other.train_losses_[-1] != whole.train_losses_[-1]


@pytest.mark.parametrize("given", ["cosine", CosineSchedule()], ids=str)
def test_named_schedule_spans_max_iter(given, optimizer, diabetes_units):
    X, y = diabetes_units

    def trained(schedule, **options):
        rate = LearningRateSGD(eta0=0.05, learning_rate=schedule)
        return optimizer(LinearRegression(), learning_rate=rate, random_state=0, **options)

    def rates(model):
        return [record["rate"] for record in model.history_]

    expected = trained(CosineSchedule(period=6), max_iter=6).fit(X, y)
    found = trained(given, max_iter=6).fit(X, y)
    assert rates(found) == rates(expected) and rates(found)[-1] < 0.005
    assert repr(found.learning_rate_.learning_rate) == "CosineSchedule(period=6)"
    assert found.learning_rate.learning_rate is given
    # in partial_fit the schedule spans max_iter calls, then the last rate is kept
    stream = trained(given, max_iter=6)
    for _ in range(8):
        stream.partial_fit(X, y)
    assert rates(stream)[:6] == rates(expected)
    assert rates(stream)[6:] == pytest.approx([0.0005, 0.0005])
    kept = trained(CosineSchedule(period=3), max_iter=6).fit(X, y)
    assert rates(kept)[3:] == pytest.approx([0.0005] * 3)


def test_fit_restarts_the_schedule(optimizer, diabetes_units):
    X, y = diabetes_units
    rate = LearningRateSGD(eta0=0.05, learning_rate=AdaptiveSchedule(tol=0.1, patience=1))
    model = optimizer(LinearRegression(), learning_rate=rate, max_iter=6, random_state=0)
    first = model.fit(X, y).train_losses_
    assert model.partial_fit(X, y).fit(X, y).train_losses_ == first


@pytest.mark.slow
def test_search(optimizer, diabetes_units):
    X, y = diabetes_units
    rate = LearningRateAdam(eta0=0.1, learning_rate=CosineSchedule(period=5))
    model = optimizer(LinearRegression(), learning_rate=rate, max_iter=5, random_state=0)
    grid = {"learning_rate__learning_rate__period": [2, 5], "learning_rate__eta0": [1e-6, 0.1]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_params_["learning_rate__eta0"] == 0.1
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 4
    with pytest.raises(ValueError, match="cannot be set, since learning_rate='constant'"):
        model.set_params(learning_rate=LearningRateAdam()).set_params(learning_rate__learning_rate__period=2)


def columns(y):
    return y[:, None]


def numpy_adam(X, y, weights, rates, decays, size=10):
    """Train a linear model by Adam or AdamW with a rate and a decay per epoch."""
    w = [weights["coef"].astype(np.float64), np.ravel(weights["intercept"]).astype(np.float64)]
    m, v, t = [0.0, 0.0], [0.0, 0.0], 0
    for rate, decay in zip(rates, decays, strict=True):
        for start in range(0, len(X), size):
            samples = slice(start, start + size)
            error = (X[samples] @ w[0] + w[1] - columns(y[samples])) / len(y[samples])
            t += 1
            for i, g in enumerate((X[samples].T @ error, error.sum(axis=0))):
                m[i], v[i] = 0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g * g
                w[i] = w[i] * (1 - rate * decay)
                w[i] = w[i] - rate * (m[i] / (1 - 0.9**t)) / (np.sqrt(v[i] / (1 - 0.999**t)) + 1e-8)
    return w


def test_state_is_kept_for_another_rate(optimizer, diabetes_units):
    X, y = diabetes_units
    source = LinearRegression().fit(X[::3], y[::3])
    source.coef_ = source.coef_.astype(np.float32).astype(np.float64)
    source.intercept_ = float(np.float32(source.intercept_))
    options = {"shuffle": False, "warm_start": True, "dtype": "float64"}
    model = optimizer(source, learning_rate=LearningRateAdam(eta0=0.01), **options)
    model.partial_fit(X, y).set_params(learning_rate__eta0=0.003).partial_fit(X, y)
    model.set_params(learning_rate=LearningRateAdamW(eta0=0.02, weight_decay=0.1)).partial_fit(X, y)
    model.set_params(learning_rate__learning_rate=CosineSchedule(period=3)).partial_fit(X, y)
    start = {"coef": source.coef_[:, None], "intercept": source.intercept_}
    expected = numpy_adam(X, y, start, [0.01, 0.003, 0.02, 0.02 * 0.01], [0, 0, 0.1, 0.1])
    np.testing.assert_allclose(model.trained_coef_["coef"], expected[0], rtol=1e-8)
    np.testing.assert_allclose(np.ravel(model.trained_coef_["intercept"]), expected[1], rtol=1e-8)


def test_states_of_other_names_are_initialized(optimizer, diabetes_units):
    X, y = diabetes_units
    options = {"shuffle": False, "random_state": 0, "dtype": "float64"}
    first = optimizer(MLPRegressor(hidden_layer_sizes=(3,)), learning_rate=LearningRateAdagrad(), **options)
    first.partial_fit(X, y)
    after = pickle.loads(pickle.dumps(first)).set_params(learning_rate=LearningRateSGDNesterov(eta0=0.01))
    plain = pickle.loads(pickle.dumps(first)).set_params(learning_rate=LearningRateRMSprop())
    assert np.isfinite(after.partial_fit(X, y).train_losses_).all()
    assert np.isfinite(plain.partial_fit(X, y).train_losses_).all()
