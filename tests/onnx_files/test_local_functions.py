"""Model-local functions: their weights are trained, and written back into the functions."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, parser

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.onnx_files.weight_locations import weight_locations, with_values

BOTH = [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer]
X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
Y = np.tanh(X @ np.array([[1.0], [-0.5], [0.3]], np.float32))
OPTIONS = {"warm_start": True, "random_state": 0, "max_iter": 40, "learning_rate": "Adam"}
HEAD = '<ir_version: 9, opset_import: ["": 18, "own": 1]> g (float[N,3] x) => (float[N,1] y)'
OWN = '<domain: "own", opset_import: ["": 18, "own": 1]>'
W = "<float[3,1] w = {0.1, 0.2, 0.3}, float zero = {0}>"
LAYER = f"""{OWN} layer (u) => (v)
    {{ w = Constant <value = float[3,1] {{0.1, 0.2, 0.3}}> () c = Constant <value = float[1] {{0.5}}> ()
       m = MatMul (u, w) v = Add (m, c) }}"""
#: Graphs with functions, and their trained weights.
FILES = {
    "one": (f"{HEAD} {W} {{ z = MatMul (x, w) y = own.f (z) }} {OWN} f (u) => (v) {{ v = Tanh (u) }}", ["w"]),
    "nested": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) y = own.f (z) }}
        {OWN} f (u) => (v) {{ t = own.g (u) v = Add (t, t) }} {OWN} g (u) => (v) {{ v = Tanh (u) }}""",
        ["w"],
    ),
    "an attribute": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) y = own.f <slope = 0.7> (z) }}
        {OWN} f <slope> (u) => (v) {{ v = LeakyRelu <alpha: float = @slope> (u) }}""",
        ["w"],
    ),
    "a constant from an attribute": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) a = own.f <by = 0.7> (z) y = own.f <by = 0.9> (a) }}
        {OWN} f <by> (u) => (v) {{ c = Constant <value_float: float = @by> () v = Mul (u, c) }}""",
        ["w"],
    ),
    "a default attribute": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) a = own.f (z) b = own.f <slope = 0.7> (z) y = Add (a, b) }}
        {OWN} f <slope: float = 0.3> (u) => (v) {{ v = LeakyRelu <alpha: float = @slope> (u) }}""",
        ["w"],
    ),
    "a default attribute inside": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) a = own.f (z) b = own.f <slope = 0.9> (z) y = Add (a, b) }}
        {OWN} f <slope: float = 0.3> (u) => (v)
        {{ a = own.g <slope: float = @slope> (u) b = own.g (u) v = Add (a, b) }}
        {OWN} g <slope: float = 0.6> (u) => (v) {{ v = LeakyRelu <alpha: float = @slope> (u) }}""",
        ["w"],
    ),
    "called in branches": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) s = ReduceSum <keepdims = 0> (x) c = Greater (s, zero)
        y = If (c) <then_branch = a () => (float[N,1] p) {{ p = own.f (z) }},
                    else_branch = b () => (float[N,1] q) {{ q = Neg (z) }}> }}
        {OWN} f (u) => (v) {{ v = Tanh (u) }}""",
        ["w"],
    ),
    "branches inside": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) y = own.f (z, zero) }}
        {OWN} f (u, zero) => (v) {{ s = ReduceSum <keepdims = 0> (u) c = Greater (s, zero)
        v = If (c) <then_branch = a () => (float[N,1] p) {{ p = Tanh (u) }},
                    else_branch = b () => (float[N,1] q) {{ q = Neg (u) }}> }}""",
        ["w"],
    ),
    "an omitted input": (
        f"""{HEAD} {W} {{ z = MatMul (x, w) y = own.f (z) }} {OWN} f (u, low) => (v)
        {{ t = Clip (u, low) k = Constant <value = float[1,1] {{2}}> () v = MatMul (t, k) }}""",
        ["w", "k"],
    ),
    "weights inside": (f"{HEAD} {{ z = own.layer (x) y = Tanh (z) }} {LAYER}", ["w", "c"]),
    "weights of two calls": (
        f"""{HEAD} {{ a = own.layer (x) b = Neg (x) c = own.layer (b)
        d = Tanh (a) e = Tanh (c) y = Sub (d, e) }} {LAYER}""",
        ["w", "c_2"],
    ),
    "weights of a function that another calls": (
        f"""{HEAD} {{ a = own.f (x) b = own.layer (x) y = Add (a, b) }}
        {OWN} f (u) => (v) {{ t = own.layer (u) v = own.g (t) }} {LAYER}
        {OWN} g (u) => (v)
        {{ k = Constant <value = float[1,1] {{0.5}}> () m = MatMul (u, k) v = Tanh (m) }}""",
        ["w", "c", "k"],
    ),
    "weights in branches inside": (
        f"""{HEAD} {{ a = own.f (x) y = Tanh (a) }} {OWN} f (u) => (v) {{ s = ReduceSum <keepdims = 0> (u)
        o = Cast <to = 9> (s) v = If (o) <
          then_branch = a () => (float[N,1] p) <float[3,1] w = {{1, 2, 3}}> {{ p = MatMul (u, w) }},
          else_branch = b () => (float[N,1] q)
            {{ w = Constant <value = float[3,1] {{3, 2, 1}}> () q = MatMul (u, w) }}> }}""",
        ["w_2"],
    ),
    "weights of the same name outside": (
        f"{HEAD} <float[1,1] w = {{2}}> {{ z = own.layer (x) y = MatMul (z, w) }} {LAYER}",
        ["w", "w_2", "c"],
    ),
    "repeated values": (
        f"""{HEAD} {{ z = own.f (x) y = Tanh (z) }} {OWN} f (u) => (v)
        {{ s = Constant <value_ints = [3, 1]> () w = ConstantOfShape <value = float[1] {{0.5}}> (s)
        v = MatMul (u, w) }}""",
        ["w"],
    ),
    "unused": (
        f"{HEAD} {W} {{ z = MatMul (x, w) y = Tanh (z) }} {LAYER.replace('layer', 'other')}",
        ["w"],
    ),
}  # fmt: skip


def file_of(name):
    return parser.parse_model(FILES[name][0])


@pytest.mark.parametrize("name", FILES)
def test_inlined_graph_is_equivalent(run_onnx, name):
    file = file_of(name)
    loaded = load_onnx(file)
    assert not loaded.functions and file == file_of(name)
    np.testing.assert_allclose(run_onnx(loaded, X)[0], run_onnx(file, X)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("name", FILES)
def test_weights_are_written_into_functions(run_onnx, name, cls):
    file, names = file_of(name), FILES[name][1]
    trained = cls(file, keep_better=False, **OPTIONS).fit(X, Y)
    assert set(trained.trained_coef_) >= set(names)
    result = trained.get_trained_onnx()
    checker.check_model(result, full_check=True)
    before, after = (np.square(run_onnx(model, X)[0] - Y).mean() for model in (file, result))
    assert after < before
    np.testing.assert_allclose(
        run_onnx(result, X)[0], trained.predict(X).reshape(-1, 1), rtol=1e-5, atol=1e-6
    )
    locations = weight_locations(result)
    for key, array in trained.trained_coef_.items():
        np.testing.assert_array_equal(locations[key].value(), array)
    assert set(names) <= {
        n for n, p in weight_locations(file).items() if (p.value() != locations[n].value()).any()
    }
    if name == "repeated values":
        nodes = [node.op_type for node in result.functions[0].node]
        assert nodes == ["Constant", "Constant", "MatMul"]
        return
    originals = {key: p.value().reshape(p.shape) for key, p in weight_locations(file).items()}
    assert with_values(result, originals) == with_values(file, originals)


def test_two_calls_share_weights():
    """The gradients of both calls add up: calls on x and -x double the step."""
    names = ("weights inside", "weights of two calls")
    options = {
        "warm_start": True,
        "max_iter": 1,
        "batch_size": 60,
        "learning_rate": 1e-3,
        "keep_better": False,
    }
    steps = []
    for name in names:
        file = parser.parse_model(
            FILES[name][0].replace("{0.1, 0.2, 0.3}", "{0, 0, 0}").replace("{0.5}", "{0}")
        )
        trained = OrtGradientOptimizer(file, "w", **options).fit(X, Y)
        steps.append(trained.trained_coef_["w"])
    np.testing.assert_allclose(steps[1], 2 * steps[0], rtol=1e-4)


def cast_floats(message, elem_type):
    """Cast every float32 tensor and type in a message."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if field.is_repeated else [value]:
            if isinstance(part, TensorProto) and part.data_type == TensorProto.FLOAT:
                array = numpy_helper.to_array(part).astype(helper.tensor_dtype_to_np_dtype(elem_type))
                part.CopyFrom(numpy_helper.from_array(array, part.name))
            elif getattr(part, "elem_type", None) == TensorProto.FLOAT:
                part.elem_type = elem_type
            else:
                cast_floats(part, elem_type)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("name", sorted(FILES.keys() - {"a constant from an attribute", "repeated values"}))
def test_half_precision(name, elem_type, cls):
    file = file_of(name)
    cast_floats(file, elem_type)
    checker.check_model(file, full_check=True)
    trained = cls(file, keep_better=False, **OPTIONS).fit(X, Y)
    result, locations = trained.get_trained_onnx(), weight_locations(file)
    assert {location.elem_type for location in weight_locations(result).values()} == {elem_type}
    for key, array in trained.trained_coef_.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(
            weight_locations(result)[key].value(), array.astype(locations[key].value().dtype)
        )
    originals = {key: p.value().reshape(p.shape) for key, p in locations.items()}
    assert with_values(result, originals) == with_values(file, originals)
