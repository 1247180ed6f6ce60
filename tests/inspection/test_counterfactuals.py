"""Counterfactuals and adversarial radii: closed forms of linear models, limits, and honest failures."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from ortlearn.exceptions import GradientError
from ortlearn.functions import differentiable
from ortlearn.inspection import adversarial_radius, counterfactual, input_gradient, integrated_gradients

X, Y = load_iris(return_X_y=True)
BINARY = (Y == 2).astype(int)
LINEAR = LogisticRegression().fit(X, BINARY)
NETWORK = make_pipeline(
    StandardScaler(), MLPClassifier((10,), solver="lbfgs", alpha=1.0, max_iter=500, random_state=0)
).fit(X, Y)
SAMPLES = X[[10, 60, 80, 90]]


def boundary(samples, weights=1.0):
    """Return the nearest points on the boundary of the linear classifier."""
    w, b = LINEAR.coef_[0], LINEAR.intercept_[0]
    return samples - (samples @ w + b)[:, None] / (w @ (w / weights)) * (w / weights)


@pytest.mark.slow
def test_linear_models_have_a_closed_form():
    found = counterfactual(LINEAR, SAMPLES, 1, n_starts=1, random_state=0)
    assert found.found.all() and (LINEAR.predict(found.samples) == 1).all()
    np.testing.assert_allclose(found.samples, boundary(SAMPLES), atol=1e-3)
    weights = np.array([1.0, 4.0, 0.5, 2.0])
    found = counterfactual(LINEAR, SAMPLES, 1, weights=weights, n_starts=1, random_state=0)
    nearest = boundary(SAMPLES, weights)
    np.testing.assert_allclose(found.samples, nearest, atol=1e-3)
    np.testing.assert_allclose(
        found.distance, np.sqrt((weights * (nearest - SAMPLES) ** 2).sum(axis=1)), rtol=1e-3
    )


@pytest.mark.slow
def test_limits():
    bounds = np.column_stack([X.min(axis=0), X.max(axis=0)])
    samples = SAMPLES[1:3]
    options = {"immutable": [0], "bounds": bounds, "integer": [2], "random_state": 0}
    found = counterfactual(NETWORK, samples, 2, **options)
    assert found.found.all() and (NETWORK.predict(found.samples) == 2).all()
    np.testing.assert_array_equal(found.samples[:, 0], samples[:, 0])
    np.testing.assert_array_equal(found.samples[:, 2], np.round(found.samples[:, 2]))
    assert (found.samples >= bounds[:, 0]).all() and (found.samples <= bounds[:, 1]).all()
    free = counterfactual(NETWORK, samples, 2, n_starts=2, random_state=0)
    assert (free.distance <= found.distance + 1e-6).all()
    same = counterfactual(NETWORK, X[:1], NETWORK.predict(X[:1])[0])
    assert same.distance[0] == 0 and "already" in same.tried[0]


def test_regressors_reach_an_interval():
    model = Ridge().fit(X[:, :3], X[:, 3])
    samples, w = SAMPLES[:, :3], model.coef_
    found = counterfactual(model, samples, (2.0, np.inf), random_state=0)
    gaps = np.maximum(2.0 - model.predict(samples), 0)
    np.testing.assert_allclose(found.samples, samples + gaps[:, None] * w / (w @ w), atol=1e-3)
    assert (model.predict(found.samples) >= 2.0).all()


@pytest.mark.slow
def test_trees_start_from_candidates():
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    with pytest.raises(GradientError, match="pass candidates=X, samples such as"):
        counterfactual(forest, SAMPLES, 2)
    found = counterfactual(forest, SAMPLES, 2, candidates=X)
    assert found.found.all() and (forest.predict(found.samples) == 2).all()
    nearest = [np.linalg.norm(X[forest.predict(X) == 2] - sample, axis=1).min() for sample in SAMPLES]
    assert (found.distance <= nearest).all() and found.distance.sum() < 0.9 * np.sum(nearest)


def test_failed_search_and_invalid_options():
    found = counterfactual(LINEAR, SAMPLES[:1], 1, immutable=[0, 1, 2, 3])
    assert not found.found[0] and np.isnan(found.samples).all() and np.isinf(found.distance[0])
    assert "none found" in found.tried[0] and "starts of the optimiser" in found.tried[0]
    for options, message in [
        ({"target": 7}, "not one of the classes"),
        ({"target": 1, "immutable": [9]}, "numbers of columns"),
        ({"target": 1, "bounds": [[1, 0]] * 4}, "low <= high"),
        ({"target": 1, "weights": [0, 1, 1, 1]}, "positive numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            counterfactual(LINEAR, SAMPLES, **options)
    with pytest.raises(TypeError, match="not DifferentiableFunction: pass the estimator itself"):
        counterfactual(differentiable(LINEAR, "decision_function"), SAMPLES, 1)
    with pytest.raises(ValueError, match="single value"):
        counterfactual(Ridge().fit(X, X[:, 0]), SAMPLES, 2.0)


def test_radii_of_a_linear_model():
    w = LINEAR.coef_[0]
    gaps = np.abs(LINEAR.decision_function(SAMPLES))
    np.testing.assert_allclose(adversarial_radius(LINEAR, SAMPLES), gaps / np.linalg.norm(w), rtol=1e-4)
    np.testing.assert_allclose(
        adversarial_radius(LINEAR, SAMPLES, norm="linf"), gaps / np.abs(w).sum(), rtol=1e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", [NETWORK, SVC(gamma=0.5).fit(X, Y)], ids=["network", "SVC"])
def test_radii_are_upper_bounds(model):
    """A sample of another class is at the distance, and not much nearer than samples found by chance."""
    samples = SAMPLES[::3]
    radii = adversarial_radius(model, samples)
    assert np.isfinite(radii).all() and (radii > 0).all()
    random = np.random.default_rng(0)
    for sample, radius in zip(samples, radii, strict=True):
        steps = random.normal(size=(4000, 4))
        steps *= radius / np.linalg.norm(steps, axis=1, keepdims=True)
        own = model.predict(sample[None])[0]
        assert (model.predict(sample + 0.5 * steps) == own).mean() > 0.99
        other = model.predict(sample[None] + 3 * steps[:1])[0]
        found = counterfactual(model, sample[None], other, n_starts=1, random_state=0)
        assert np.isfinite(found.distance).all()


def test_errors():
    with pytest.raises(ValueError, match="classifier"):
        adversarial_radius(Ridge().fit(X, Y), SAMPLES)
    with pytest.raises(ValueError, match="norm='l1'"):
        adversarial_radius(LINEAR, SAMPLES, norm="l1")


def test_regressors_of_several_outputs_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="a regressor with one output"):
        counterfactual(Ridge().fit(X, X), X[:1], (1.0, 2.0), candidates=X)


def test_frames_whose_columns_are_selected_by_name():
    frame = pd.DataFrame(X, columns=list("abcd"))
    steps = make_column_transformer((StandardScaler(), ["a", "c"]), ("passthrough", ["b", "d"]))
    model = make_pipeline(steps, LogisticRegression()).fit(frame, BINARY)
    found = counterfactual(model, frame.iloc[[10, 60]], 1, n_starts=1, random_state=0)
    assert found.found.all() and found.distance.max() > 0
    assert (model.predict(pd.DataFrame(found.samples, columns=frame.columns)) == 1).all()
    assert (adversarial_radius(model, frame.iloc[[10, 60]]) > 0).all()


def test_samples_with_text():
    frame = pd.DataFrame({"a": X[:, 0], "t": np.where(X[:, 1] > 3, "u", "v")})
    steps = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["t"]))
    model = make_pipeline(steps, LogisticRegression()).fit(frame, BINARY)
    with pytest.raises(ValueError, match="X must be numbers"):
        counterfactual(model, frame[:2], 1)
    with pytest.raises(GradientError, match="the model after its preprocessing"):
        integrated_gradients(model, frame[:2], frame[:1])
    slopes, step = input_gradient(model, frame[:2], output=1)["a"], 1e-4
    moved = [model.predict_proba(frame[:2].assign(a=frame["a"] + way * step))[:, 1] for way in (1, -1)]
    np.testing.assert_allclose(slopes, (moved[0] - moved[1]) / (2 * step), rtol=1e-4)
