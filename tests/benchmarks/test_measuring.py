"""The measurement detects errors."""

import numpy as np
import pytest
from onnx import TensorProto, parser
from onnx.reference import ReferenceEvaluator
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.model_zoo.convert import convert
from benchmarks.model_zoo.data import load
from benchmarks.model_zoo.in_float64 import in_float64
from benchmarks.model_zoo.learned import learned_attributes
from benchmarks.model_zoo.measurement import TOLERANCES
from benchmarks.model_zoo.predictions import difference, same_outputs
from benchmarks.model_zoo.slopes import Slopes, gradient_errors, gradients_at, measure_slopes
from benchmarks.model_zoo.training import perturbed
from benchmarks.model_zoo.verdict import is_trained, reason, silently_wrong, state

CUBIC = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[N,2] x, float[2,1] w) => (float loss)
    <float three = {3}> { z = MatMul (x, w) p = Pow (z, three) loss = ReduceSum <keepdims = 0> (p) }
""")
KINKED = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[3] w) => (float loss) { a = Abs (w) loss = ReduceSum <keepdims = 0> (a) }
""")
ROWS = np.array([[1, 2], [3, -1]], dtype=np.float32)
WEIGHT = np.array([[0.5], [1.5]], dtype=np.float32)


def cubic_gradient(weight):
    return 3 * ROWS.T.astype(float) @ (ROWS @ weight.astype(float)) ** 2


def test_a_graph_in_float64_has_no_float32_left():
    model = in_float64(CUBIC)
    kinds = {v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)}
    assert kinds | {t.data_type for t in model.graph.initializer} == {TensorProto.DOUBLE}
    value = ReferenceEvaluator(model).run(None, {"x": ROWS.astype(float), "w": WEIGHT.astype(float)})[0]
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, ((ROWS @ WEIGHT.astype(float)) ** 3).sum(), rtol=1e-15)


def test_trees_stay_in_float32_inside_a_graph_in_float64():
    X, y = load("regression")
    graph = convert(GradientBoostingRegressor(n_estimators=2).fit(X, y), X)
    doubled = in_float64(graph)
    name = graph.graph.input[0].name
    found = ReferenceEvaluator(doubled).run(None, {name: X})[0]
    expected = ReferenceEvaluator(graph).run(None, {name: X.astype(np.float32)})[0]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_slopes_equal_the_derivative():
    slopes = measure_slopes(CUBIC, {"x": ROWS}, {"w": WEIGHT})
    assert len(slopes.found) == 2 and not slopes.kinks
    for name, direction, slope, noise in slopes.found:
        assert name == "w"
        assert slope == pytest.approx(float((cubic_gradient(WEIGHT) * direction).sum()), rel=1e-7)
        assert noise < 1e-6 * abs(slope)


def test_a_point_with_a_kink_has_no_slope():
    assert measure_slopes(KINKED, {}, {"w": np.array([1, 0, 0], np.float32)}).kinks == ["w"]
    assert not measure_slopes(KINKED, {}, {"w": np.array([1, -1, 2], np.float32)}).kinks


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wrong_gradients_are_detected(dtype):
    slopes = measure_slopes(CUBIC, {"x": ROWS}, {"w": WEIGHT})
    bound = TOLERANCES[np.dtype(dtype).name]
    right = cubic_gradient(WEIGHT).astype(dtype)
    assert gradient_errors({"w": right}, slopes)["w"] <= bound
    wrong = 1.05 if dtype == np.float32 else 1.0005
    assert gradient_errors({"w": (right * wrong).astype(dtype)}, slopes)["w"] > bound
    assert gradient_errors({"w": np.zeros_like(right)}, slopes)["w"] > bound
    assert gradient_errors({"w": np.full_like(right, np.nan)}, slopes)["w"] == np.inf


def test_gradient_of_a_cubic():
    slopes = measure_slopes(CUBIC, {"x": ROWS}, {"w": WEIGHT})
    found = gradients_at(CUBIC, "loss", {"x": ROWS}, {"w": WEIGHT}, "rules")
    assert gradient_errors(found, slopes)["w"] < 1e-5


def test_a_weight_without_slopes_has_no_error():
    assert gradient_errors({"w": np.ones(2)}, Slopes(0.0, [], ["w"])) == {}


def test_perturbed_weights_keep_their_signs_and_move():
    weights = {"w": np.array([1, -2, 0], dtype=np.float32), "zero": np.zeros(4, dtype=np.float32)}
    moved = perturbed(weights, 0.2)
    assert np.all(np.sign(moved["w"])[:2] == [1, -1]) and moved["w"].dtype == np.float32
    assert all(np.all(moved[name] != weights[name]) for name in weights)
    np.testing.assert_array_less(np.abs(moved["w"] - weights["w"])[:2], 0.2 * np.abs(weights["w"])[:2] + 1e-6)


def test_labels_may_differ_in_few_samples_only():
    expected = np.arange(100)
    one = expected.copy()
    one[3] = 7
    assert difference(one.astype(str), expected.astype(str)) == 0.0
    one[:5] = 99
    assert difference(one.astype(str), expected.astype(str)) == pytest.approx(0.05)


def test_differences_are_relative_to_large_values():
    assert difference(np.array([1000.0, 2.0]), np.array([1001.0, 2.0])) == pytest.approx(1 / 1001)
    assert difference(np.array([np.nan, 0.5]), np.array([np.nan, 0.25])) == pytest.approx(0.25)
    assert difference(np.zeros(3), np.zeros(4)) == np.inf
    assert difference(np.array([np.nan]), np.zeros(1)) == np.inf


def test_a_file_that_predicts_otherwise_is_found():
    predicted = {"predict": np.array([1.0, 2.0]), "decision_function": np.array([5.0, 6.0])}
    assert same_outputs(predicted, [np.array([[1.0], [2.0]])]) == 0.0
    assert same_outputs(predicted, [np.array([[1.0], [3.0]])]) == pytest.approx(0.5)
    assert same_outputs(predicted, [np.zeros((5, 5))]) == np.inf


@pytest.mark.parametrize(
    ("model", "data", "expected"),
    [
        (Ridge(), "regression", {"coef_", "intercept_"}),
        (LogisticRegression(), "binary", {"coef_", "intercept_"}),
        (StandardScaler(), "regression", {"mean_", "scale_", "var_"}),
        (SelectKBest(k=2), "binary", set()),
        (OneHotEncoder(), "binary_categories", set()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_learned_attributes_are_found_in_the_graph(model, data, expected):
    X, y = load(data)
    model.fit(X, y)
    assert set(learned_attributes(model, convert(model, X))) == expected


def test_leaves_of_trees_are_found_in_the_graph_though_multiplied_by_a_rate():
    X, y = load("regression")
    model = GradientBoostingRegressor(n_estimators=2, learning_rate=0.3).fit(X, y)
    found = learned_attributes(model, convert(model, X))
    assert {f"estimators_[{i}].tree_.value" for i in (0, 1)} <= set(found)


def test_verdicts():
    names = ("fits", "converts", "learned", "prepares", "gradient_rules", "decreases_rules")
    right = dict.fromkeys(names, {"ok": True})
    assert is_trained(right, "rules") and not is_trained(right, "ort") and state(right) == "trained"
    plain = {**right, "gradient_ort": {"ok": False, "reason": "no gradient", "plain": True}}
    assert state(plain) == "trained by rules" and not silently_wrong(plain)
    assert reason(plain) == "gradient_ort: no gradient"
    wrong = {**right, "gradient_ort": {"ok": False, "reason": "off"}}
    assert state(wrong) == "wrong" and silently_wrong(wrong) == ["gradient_ort"]
    lost = {**right, "gradient_ort": {"ok": False, "reason": "SIGSEGV", "crash": True}}
    assert state(lost) == "crash" and not silently_wrong(lost)
    failed = {"fits": {"ok": True}, "converts": {"ok": False}, "prepares": {"ok": False}}
    assert state(failed) == "not converted"
