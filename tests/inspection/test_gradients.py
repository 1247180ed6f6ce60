"""Explanations by gradients: closed forms, sum rules, and exact attributions of trees."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.ensemble import (
    AdaBoostRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    StackingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ortlearn.conversion import sklearn_to_onnx
from ortlearn.exceptions import GradientError, GradientWarning
from ortlearn.functions import differentiable
from ortlearn.inspection import (
    InputGradientDisplay,
    input_gradient,
    integrated_gradients,
    save_attributions,
    smooth_gradient,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
CLASSES = np.digitize(Y, [-0.5, 0.5])
P, START = X[:6] + 0.05, X[6:12]
NETWORK = {"hidden_layer_sizes": (8,), "activation": "tanh", "max_iter": 40, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_gradients_of_the_predicted_class():
    model = LogisticRegression().fit(X, CLASSES)
    p, w = model.predict_proba(P), model.coef_
    jacobian = p[:, :, None] * (w[None] - np.einsum("nk,kp->np", p, w)[:, None])
    np.testing.assert_allclose(input_gradient(model, P), jacobian[np.arange(6), p.argmax(axis=1)], rtol=1e-9)
    np.testing.assert_allclose(input_gradient(model, P, output=2), jacobian[:, 2], rtol=1e-9)
    decision = input_gradient(model, P, output=1, method="decision_function")
    np.testing.assert_allclose(decision, np.tile(w[1], (6, 1)), rtol=1e-9)


@pytest.mark.parametrize("function", [input_gradient, smooth_gradient])
def test_files_of_classifiers_explain_the_predicted_class(function):
    model = LogisticRegression().fit(X, CLASSES)
    options = {} if function is input_gradient else {"random_state": 0}
    found = function(sklearn_to_onnx(model), P.astype(np.float32), **options)
    np.testing.assert_allclose(found, function(model, P, **options), rtol=1e-3, atol=1e-5)


def test_smoothed_gradients_of_a_square():
    model = make_pipeline(PolynomialFeatures(2), Ridge(alpha=1e-8)).fit(X[:, :1], X[:, 0] ** 2)
    found = smooth_gradient(model, P[:, :1], scale=0.3, random_state=0)
    np.testing.assert_allclose(found, 2 * P[:, :1], rtol=1e-4)  # pairs of opposite noise cancel
    network = MLPRegressor(**NETWORK).fit(X, Y)
    exact = input_gradient(network, P)
    np.testing.assert_allclose(smooth_gradient(network, P, scale=0.0), exact, rtol=1e-9)
    wide = smooth_gradient(network, P, scale=[2.0, 2.0, 2.0, 2.0], n_samples=400, random_state=0)
    assert np.abs(wide).mean() < 0.8 * np.abs(exact).mean()


def test_integrated_gradients_have_closed_forms():
    linear = Ridge().fit(X, Y)
    found = integrated_gradients(linear, P, START)
    np.testing.assert_allclose(found.attributions, linear.coef_ * (P - START), rtol=1e-9)
    assert found.error.max() < 1e-12 and not found.exact
    product = make_pipeline(PolynomialFeatures(2), Ridge(alpha=1e-10)).fit(X[:, :2], X[:, 0] * X[:, 1])
    shares = integrated_gradients(product, [[2.0, 3.0]], [0.0, 0.0]).attributions
    np.testing.assert_allclose(shares, [[3.0, 3.0]], rtol=1e-4)  # x1 x2 / 2 each


@pytest.mark.parametrize("activation", ["tanh", "relu", "logistic"])
def test_integrated_gradients_are_complete(activation):
    model = MLPClassifier(**{**NETWORK, "activation": activation, "hidden_layer_sizes": (20, 20)}).fit(
        X, CLASSES
    )
    found = integrated_gradients(model, P, X.mean(axis=0))
    change = found.value - found.baseline_value
    np.testing.assert_allclose(found.attributions.sum(axis=1), change, atol=1e-3 * np.abs(change).max())
    np.testing.assert_allclose(found.value, model.predict_proba(P).max(axis=1), rtol=1e-9)
    with pytest.warns(GradientWarning, match="take more steps"):
        rough = integrated_gradients(model, 30 * P, -30 * P, steps=1)
    assert rough.error.max() > 1e-2


TREES = {
    "tree": (DecisionTreeRegressor(max_depth=4), Y, "predict"),
    "forest": (RandomForestClassifier(10, random_state=0), CLASSES, "predict_proba"),
    "boosting": (GradientBoostingClassifier(n_estimators=5), CLASSES, "predict_proba"),
    "histograms": (HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5), Y, "predict"),
    "isolation": (IsolationForest(n_estimators=10, random_state=0), None, "decision_function"),
    "adaboost": (AdaBoostRegressor(n_estimators=5, random_state=0), Y, "predict"),
    "pipeline": (make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=5)), Y, "predict"),
}


@pytest.mark.parametrize("name", TREES)
def test_jumps_of_trees_sum_exactly(name):
    model, y, method = TREES[name]
    found = integrated_gradients(model.fit(X, y), P, START, method=method)
    outputs = [getattr(model, method)(samples) for samples in (P, START)]
    columns = outputs[0].argmax(axis=1) if outputs[0].ndim > 1 else None
    value, first = (o if columns is None else o[np.arange(6), columns] for o in outputs)
    assert found.exact and found.error.max() < 1e-12
    np.testing.assert_allclose(found.value, value, rtol=1e-9)
    np.testing.assert_allclose(found.attributions.sum(axis=1), value - first, atol=1e-12)
    assert np.abs(found.attributions).max() > 1e-3


@pytest.mark.parametrize("name", ["tree", "forest", "histograms"])
def test_jumps_are_the_limit_of_smoothed_trees(name):
    """Integrated gradients of narrow sigmoids by many steps, an independent computation."""
    model, y, method = TREES[name]
    model.fit(X, y)
    exact = integrated_gradients(model, P[:2], START[:2], output=0 if method == "predict_proba" else None)
    smooth = differentiable(model, method, smooth=2e-3)
    index = 0 if method == "predict_proba" else None
    shares = (np.arange(4000) + 0.5) / 4000
    for sample, first, expected in zip(P[:2], START[:2], exact.attributions, strict=True):
        gradient = smooth.gradient(first + shares[:, None] * (sample - first), index)
        np.testing.assert_allclose(gradient.mean(axis=0) * (sample - first), expected, atol=0.02)


def test_thresholds_at_one_point_share_the_jump():
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = DecisionTreeRegressor().fit(corners, [0.0, 0.0, 0.0, 1.0])  # x1 and x2
    np.testing.assert_allclose(integrated_gradients(model, [[1, 1]], [0, 0]).attributions, [[0.5, 0.5]])
    np.testing.assert_allclose(integrated_gradients(model, [[0, 0]], [1, 1]).attributions, [[-0.5, -0.5]])
    np.testing.assert_allclose(integrated_gradients(model, [[1, 0]], [0, 0]).attributions, [[0, 0]])
    np.testing.assert_allclose(integrated_gradients(model, [[1, 1]], [1, 1]).attributions, [[0, 0]])


def test_missing_values_of_trees():
    samples = X.copy()
    samples[::4, 0] = np.nan
    model = HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5).fit(samples, Y)
    found = integrated_gradients(model, samples[:8], samples[8:16])
    change = model.predict(samples[:8]) - model.predict(samples[8:16])
    np.testing.assert_allclose(found.attributions.sum(axis=1), change, atol=1e-12)


def test_unsupported_attributions(tmp_path):
    mixed = make_pipeline(PolynomialFeatures(2), DecisionTreeRegressor()).fit(X, Y)
    with pytest.raises(GradientError, match="do more than scale columns"):
        integrated_gradients(mixed, P, START)
    with pytest.raises(GradientError, match="piecewise constant"):
        input_gradient(TREES["tree"][0].fit(X, Y), P)
    stack = StackingRegressor([("t", DecisionTreeRegressor(max_depth=3)), ("l", Ridge())], Ridge()).fit(X, Y)
    with pytest.warns(GradientWarning, match="Jumps of trees"):
        integrated_gradients(stack, P, START)
    with pytest.warns(GradientWarning, match="leave out their jumps"):
        save_attributions(stack, tmp_path / "file.onnx")
    smooth = differentiable(stack, smooth=0.1)
    save_attributions(smooth, tmp_path / "file.onnx")
    assert "jumps of trees" in differentiable(stack).explain() and "jumps" not in smooth.explain()
    with pytest.raises(ValueError, match="baseline has the shape"):
        integrated_gradients(Ridge().fit(X, Y), P, START[:2])
    with pytest.raises(ValueError, match="steps=0"):
        integrated_gradients(Ridge().fit(X, Y), P, START, steps=0)
    with pytest.raises(ValueError, match="scale=-1"):
        smooth_gradient(Ridge().fit(X, Y), P, scale=-1)


def test_frames_keep_their_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = Ridge().fit(frame, Y)
    found = integrated_gradients(model, frame[:6], frame.mean())
    np.testing.assert_allclose(found.attributions, model.coef_ * (X[:6] - X.mean(axis=0)), rtol=1e-9)
    display = InputGradientDisplay.from_estimator(model, frame)
    assert {label.get_text() for label in display.ax_.get_yticklabels()} == set("abcd")


@pytest.mark.parametrize("steps", [1, 8, 20])
def test_files_with_attributions(tmp_path, steps):
    model = MLPClassifier(**NETWORK).fit(X, CLASSES)
    mean = X.mean(axis=0)
    save_attributions(model, tmp_path / "file.onnx", mean, steps=steps, output=1)
    session = onnxruntime.InferenceSession(tmp_path / "file.onnx", providers=["CPUExecutionProvider"])
    assert [value.name for value in session.get_inputs()] == ["X"]
    for samples in (P, P[:1]):
        value, attributions = session.run(["predict_proba", "attributions"], {"X": samples})
        np.testing.assert_allclose(value, model.predict_proba(samples), rtol=1e-9)
        expected = integrated_gradients(
            differentiable(model, "predict_proba"), samples, mean, steps=8, output=1
        )
        np.testing.assert_allclose(attributions, expected.attributions, atol=1e-4 if steps > 1 else 0.2)
    times = save_attributions(Ridge().fit(X, Y), tmp_path / "other.onnx")
    found = onnxruntime.InferenceSession(times.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(
        found.run(["attributions"], {"X": P})[0], P * Ridge().fit(X, Y).coef_, rtol=1e-9
    )
    with pytest.raises(ValueError, match="baseline has the shape"):
        save_attributions(model, tmp_path / "file.onnx", mean[:2], output=1)


def test_display():
    network = MLPRegressor(**NETWORK).fit(X, Y)
    display = InputGradientDisplay.from_estimator(
        network, P, baseline=X.mean(axis=0), feature_names=list("abcd")
    )
    means = integrated_gradients(network, P, X.mean(axis=0)).attributions.mean(axis=0)
    np.testing.assert_allclose(sorted(bar.get_width() for bar in display.bars_), sorted(means), rtol=1e-9)
    assert display.ax_.get_xlabel() == "attribution" and display.image_ is None
    image = InputGradientDisplay.from_estimator(network, P[:1], noise=0.1, image_shape=(2, 2), random_state=0)
    assert image.image_.get_array().shape == (2, 2) and image.bars_ is None
    with pytest.raises(ValueError, match="does not have 4 elements"):
        image.plot(image_shape=(3, 2))
