"""IsotonicRegression stays monotonic and within its bounds during training."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.testing import check_model, check_objective
from ortlearn.trainable.conversion import to_trainable

OPTIONS = {"warm_start": True, "max_iter": 2000, "keep_better": False, "learning_rate": "Adam"}
RNG = np.random.RandomState(0)
X = RNG.uniform(-2, 2, size=(60, 1))
Y = np.tanh(X[:, 0]) + 0.2 * RNG.normal(size=60)
WIDE = np.concatenate([X, [[-3.0], [4.0]]])

BOUNDS = [{}, {"y_min": -0.5}, {"y_max": 0.5}, {"y_min": -0.5, "y_max": 0.5}, {"y_min": 0.0, "y_max": 1.0}]


def sign_of(increasing):
    return -1 if increasing is False else 1


@pytest.mark.parametrize("increasing", [True, False, "auto"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_directions_and_bounds(increasing, bounds):
    model = IsotonicRegression(increasing=increasing, out_of_bounds="clip", **bounds)
    model.fit(X, sign_of(increasing) * Y)
    check_model(model, X, gradient_rtol=1e-4)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_trained_levels_stay_monotonic_and_in_bounds(increasing, bounds):
    model = IsotonicRegression(increasing=increasing, out_of_bounds="clip", **bounds)
    model.fit(X, sign_of(increasing) * Y)
    other = 3 * np.random.default_rng(1).normal(size=60)
    ours = OrtGradientOptimizer(
        model, warm_start=True, max_iter=30, learning_rate="Adam", keep_better=False, random_state=0
    ).fit(X, other)
    back = ours.to_sklearn()
    steps = sign_of(increasing) * np.diff(back.y_thresholds_)
    assert (steps >= 0).all() and np.abs(back.y_thresholds_ - model.y_thresholds_).max() > 0.01
    assert back.y_thresholds_.min() >= bounds.get("y_min", -np.inf) - 1e-6
    assert back.y_thresholds_.max() <= bounds.get("y_max", np.inf) + 1e-6
    np.testing.assert_allclose(back.predict(WIDE), ours.predict(WIDE), atol=1e-5)


def test_the_objective():
    check_objective(IsotonicRegression().fit(X, Y), X, Y)


@pytest.mark.slow
@pytest.mark.sweep(1)
@pytest.mark.parametrize("bounds", [{}, {"y_min": -0.9, "y_max": 0.9}], ids=str)
def test_levels_follow_new_labels(bounds):
    """A level is the mean of its new labels, as in a new fit."""
    positions = np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    old, new = (np.repeat(levels, 20) for levels in ([-0.5, 0.0, 0.5], [-0.8, 0.3, 0.6]))
    model = IsotonicRegression(**bounds).fit(positions, old)
    ours = OrtGradientOptimizer(model, **OPTIONS)
    np.testing.assert_allclose(
        ours.fit(positions, new).to_sklearn().y_thresholds_, [-0.8, 0.3, 0.6], atol=0.02
    )


@pytest.mark.slow
def test_a_level_parts_again():
    """With bounds, training separates levels that were equal in the fit."""
    positions = np.repeat([[0.0], [1.0], [2.0], [3.0]], 20, axis=0)
    old, new = (np.repeat(levels, 20) for levels in ([0.0, 0.5, 0.5, 1.0], [0.0, 0.2, 0.8, 1.0]))
    model = IsotonicRegression(y_min=-1, y_max=2).fit(positions, old)
    ours = OrtGradientOptimizer(model, **OPTIONS)
    np.testing.assert_allclose(
        ours.fit(positions, new).to_sklearn().y_thresholds_, [0, 0.2, 0.8, 1], atol=0.02
    )


@pytest.mark.parametrize("outside", ["nan", "raise"])
def test_outside_of_the_thresholds(outside):
    model = IsotonicRegression(out_of_bounds=outside).fit(X, Y)
    ours = OrtGradientOptimizer(model, warm_start=True, max_iter=1, learning_rate=1e-30).fit(X, Y)
    found = ours.predict(WIDE)
    assert np.isnan(found[60:]).all()
    np.testing.assert_allclose(found[:60], model.predict(X), atol=1e-5)


def test_vectors_and_columns():
    fitted = IsotonicRegression(out_of_bounds="clip").fit(X[:, 0], Y)
    for source in (fitted, IsotonicRegression(out_of_bounds="clip")):
        warm = source is fitted
        ours = OrtGradientOptimizer(source, warm_start=warm, max_iter=1, learning_rate=1e-30).fit(X[:, 0], Y)
        np.testing.assert_allclose(ours.predict(WIDE[:, 0]), ours.predict(WIDE))
        np.testing.assert_allclose(ours.predict(WIDE[:, 0]), fitted.predict(WIDE), atol=1e-4)
        assert ours.predict(list(X[:3, 0])).shape == (3,)


def test_one_threshold():
    model = IsotonicRegression().fit(np.ones((5, 1)), [1.0, 2.0, 3.0, 4.0, 5.0])
    check_model(model, np.array([[1.0], [7.0]]))
    assert to_trainable(model, n_features=1).origins() == {"y_thresholds": "y_thresholds_"}
