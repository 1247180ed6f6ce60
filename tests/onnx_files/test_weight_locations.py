"""Weights in initializers, constants and subgraphs are named, trained and written back."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, parser

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import WriteBackError
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.onnx_files.named_weights import with_named_weights
from ortlearn.onnx_files.weight_locations import weight_locations, with_values
from ortlearn.trainable.conversion import to_trainable

X = np.random.RandomState(0).normal(size=(40, 2)).astype(np.float32)
y = X @ np.array([2, -1], np.float32) + 0.5
HEAD = '<ir_version: 8, opset_import: ["": 18]>'
CONSTANTS = f"""{HEAD} g (float[N,2] x) => (float[N,1] y)
    {{ w = Constant <value = float[2,1] {{0.5, 0.5}}> ()
       b = Constant <value_floats = [1.0]> ()
       s = Constant <value_float = 2.0> ()
       z = MatMul (x, w) t = Add (z, b) y = Mul (t, s) }}"""
FILLED = f"""{HEAD} g (float[N,2] x) => (float[N,1] y) <int64[2] shape = {{2, 1}}>
    {{ w = ConstantOfShape <value = float[1] {{0.25}}> (shape) v = Identity (w) y = MatMul (x, v) }}"""
BRANCHES = f"""{HEAD} g (float[N,2] x) => (float[N,1] y) <bool c = {{1}}>
    {{ y = If (c) <
         then_branch = one () => (float[N,1] p) <float[2,1] w = {{1, 2}}> {{ p = MatMul (x, w) }},
         else_branch = two () => (float[N,1] q)
           {{ w = Constant <value = float[2,1] {{3, 4}}> () q = MatMul (x, w) }}> }}"""
TEXTS = {"constants": CONSTANTS, "filled": FILLED, "branches": BRANCHES}


def half(elem_type):
    """Return a linear model of the given type."""
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    infos = [helper.make_tensor_value_info(name, elem_type, ["N", k]) for name, k in (("x", 2), ("y", 1))]
    weight = numpy_helper.from_array(np.full((2, 1), 0.5).astype(dtype), "w")
    bias = helper.make_node("Constant", [], ["b"], value=numpy_helper.from_array(np.ones(1).astype(dtype)))
    nodes = [bias, helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Add", ["z", "b"], ["y"])]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize(
    "kind, names",
    [("constants", ["w", "b", "s"]), ("filled", ["w"]), ("branches", ["w_2", "w_3"])],
)
def test_named_weights(run_onnx, kind, names):
    model = parser.parse_model(TEXTS[kind])
    named = with_named_weights(model)
    checker.check_model(named, full_check=True)
    assert sorted(weight_locations(named)) == sorted(weight_locations(model)) == sorted(names)
    assert {t.name for t in named.graph.initializer} >= set(names)
    np.testing.assert_array_equal(run_onnx(named, X)[0], run_onnx(model, X)[0])
    assert model == parser.parse_model(TEXTS[kind])


@pytest.mark.parametrize("kind", list(TEXTS))
def test_values_are_written_to_the_locations_of_the_weights(run_onnx, kind):
    model = parser.parse_model(TEXTS[kind])
    rng = np.random.RandomState(1)
    new = {name: rng.normal(size=p.shape).astype(np.float32) for name, p in weight_locations(model).items()}
    written = with_values(model, new)
    checker.check_model(written, full_check=True)
    for name, array in new.items():
        np.testing.assert_array_equal(weight_locations(written)[name].value().reshape(array.shape), array)
    again = with_named_weights(written)
    np.testing.assert_array_equal(run_onnx(written, X)[0], run_onnx(again, X)[0])


@pytest.mark.parametrize(
    "kind, changed", [("constants", {"w", "b"}), ("filled", {"w"}), ("branches", {"w_2"})]
)
@pytest.mark.parametrize("cls", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_trained_file_differs_in_its_weights_only(run_onnx, kind, changed, cls):
    model = parser.parse_model(TEXTS[kind])
    trained = cls(model, max_iter=30, warm_start=True, random_state=0).fit(X, y[:, None])
    result = trained.get_trained_onnx()
    np.testing.assert_allclose(run_onnx(result, X)[0], trained.predict(X), rtol=1e-5)
    before, after = weight_locations(model), weight_locations(result)
    assert changed <= {n for n in before if not np.array_equal(before[n].value(), after[n].value())}
    originals = {name: location.value().reshape(location.shape) for name, location in before.items()}
    if kind == "filled":
        assert [n.op_type for n in result.graph.node] == ["Constant", "Identity", "MatMul"]
    else:
        assert with_values(result, originals) == with_values(model, originals)


def test_weights_of_loops_get_gradients(run_onnx):
    model = parser.parse_model(f"""{HEAD} g (float[N,2] x) => (float[N,1] y)
        <int64 n = {{2}}, bool go = {{1}}, float[2,1] v = {{1, -1}}>
        {{ h = Loop (n, go, x) <body = b (int64 i, bool c, float[N,2] s) => (bool d, float[N,2] t)
             <float[2,2] w = {{0.5, 0.1, 0.2, 0.4}}>
             {{ d = Identity (c) r = MatMul (s, w) t = Tanh (r) }}>
           y = MatMul (h, v) }}""")
    assert to_trainable(model).trained == ["I2_v", "I3_w"]
    trained = OrtGradientOptimizer(model, max_iter=20, warm_start=True, random_state=0).fit(X, y[:, None])
    result = trained.get_trained_onnx()
    (body,) = [a.g for n in result.graph.node for a in n.attribute if a.name == "body"]
    np.testing.assert_array_equal(numpy_helper.to_array(body.initializer[0]), trained.trained_coef_["w"])
    np.testing.assert_allclose(run_onnx(result, X)[0], trained.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cls", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_half_precision_is_trained_in_float32(elem_type, cls):
    model = half(elem_type)
    assert {t.data_type for t in load_onnx(model).graph.initializer} == {TensorProto.FLOAT}
    options = {"max_iter": 500, "warm_start": True, "random_state": 0, "learning_rate": 0.05}
    trained = cls(model, **options).fit(X, y[:, None])
    result = trained.get_trained_onnx()
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    for name, location in weight_locations(result).items():
        assert location.elem_type == elem_type
        np.testing.assert_array_equal(location.value(), trained.trained_coef_[name].astype(dtype))
    originals = {name: location.value() for name, location in weight_locations(model).items()}
    assert with_values(result, originals) == with_values(model, originals)
    np.testing.assert_allclose(trained.predict(X)[:, 0], y, atol=0.05)


def test_overflow_is_an_error():
    model = half(TensorProto.FLOAT16)
    with pytest.raises(WriteBackError, match=r"'w' has values up to 1e\+06, which overflow float16"):
        with_values(model, {"w": np.full((2, 1), 1e6, np.float32)})
    infinite = with_values(model, {"w": np.full((2, 1), np.inf, np.float32)})
    assert np.isinf(weight_locations(infinite)["w"].value()).all()


def test_other_shapes_and_names_are_rejected():
    model = parser.parse_model(CONSTANTS)
    with pytest.raises(ValueError, match=r"'w' must have the shape \(2, 1\), got \(2,\)"):
        with_values(model, {"w": np.ones(2, np.float32)})
    with pytest.raises(KeyError):
        with_values(model, {"missing": np.ones(2, np.float32)})
