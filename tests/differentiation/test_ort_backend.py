"""Gradients by onnxruntime-training are equal to those of the built-in rules, or rejected."""

from __future__ import annotations

import numpy as np
import pytest

from ortlearn.differentiation import gradient_of_loss, onnx_derivative, ort_backend
from ortlearn.differentiation.random_feed import random_feed
from ortlearn.exceptions import GradientError, MissingRuntimeError
from ortlearn.graphs import make_initializers_of
from ortlearn.training.devices import Device
from ortlearn.training.sessions import make_session
from tests.differentiation.evaluation import run
from tests.differentiation.models import parse
from tests.differentiation.records import RECORDS
from tests.differentiation.test_rules import node_model, seeds_of

needs_training = pytest.mark.needs_training

HEAD = "g (float[3,2] x, float[2] w, float[3,2] q, float[1,2] c, float[2] v) => (float loss)"
WHERE = "half = Constant <value_float = 0.5> () m = Greater (q, half)"
LAST = "s = Mul (h, h) t = Mul (s, w) loss = ReduceSum <keepdims = 0> (t)"


def model_of(body, last=LAST):
    return parse(f"{HEAD} {{ {body} {last} }}")


#: Graphs for which the gradient of the C++ builder is wrong, with the reason.
WRONG = {
    "ScatterElements that multiplies": (
        "i = Constant <value = int64[3,2] {0, 0, 2, 0, 1, 1}> () p = Mul (x, w) "
        '[bad] h = ScatterElements <reduction = "mul"> (x, i, p)', "combines the values"),
    "ScatterND that takes the largest": (
        "i = Constant <value = int64[3,1] {0, 0, 2}> () p = Mul (x, w) "
        '[bad] h = ScatterND <reduction = "max"> (x, i, p)', "combines the values"),
    "Dropout in a mode that is computed": (
        "half = Constant <value_float = 0.5> () k = Greater (half, half) "
        "p = Mul (x, w) [bad] h, m = Dropout (p, half, k)", "its mode 'k' is not constant"),
    "Split of an unknown length": (
        "half = Constant <value_float = 0.5> () m = Greater (q, half) k = NonZero (m) u = Cast <to = 1> (k) "
        "n = Transpose (u) e = ReduceSum (w) p = Mul (u, e) "
        "[bad] f, other = Split <axis = 1, num_outputs = 2> (p) r = ReduceSum (f) "
        "h = Mul (x, r)", "not used"),
}  # fmt: skip


@needs_training
@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_rejected(name):
    body, reason = WRONG[name]
    model = model_of(body)
    operator = name.partition(" ")[0]
    message = rf"wrong gradient for {operator} \(node 'bad'\): .*{reason}"
    wrt = ["x", "w"]
    with pytest.raises(GradientError, match=message):
        gradient_of_loss(model, "loss", wrt, "ort")
    with pytest.raises(GradientError, match=message):
        onnx_derivative(make_initializers_of(model, ["w"]), backend="ort")


def test_auto_uses_rules_if_the_builder_is_wrong():
    model = model_of(WRONG["ScatterElements that multiplies"][0].replace("mul", "add"))
    assert gradient_of_loss(model, "loss", ["x"]) == gradient_of_loss(model, "loss", ["x"], "rules")


#: Forms of the same operators for which the C++ builder is correct.
RIGHT = {
    "the broadcast branch is off the path": f"{WHERE} h = Where (m, x, c)",
    "the condition is broadcast": "m = Greater (c, v) a = Where (m, x, q) b = Where (m, q, x) h = Add (a, b)",
    "the condition depends on a weight": (
        "half = Constant <value = float[1] {0.5}> () m = Greater (w, half) h = Where (m, x, q)"),
    "the broadcast exponent is off the path": "h = Pow (x, c)",
    "both outputs of Split are used": (
        "p = Mul (x, w) a, b = Split <axis = 1, num_outputs = 2> (p) h = Mul (a, b)"),
    "ScatterND that replaces": (
        "i = Constant <value = int64[2,1] {0, 2}> () p = Mul (x, w) k = Slice (p, i0, i2) "
        "h = ScatterND (x, i, k)"),
    "a vector on the left": "a = Transpose (q) k = MatMul (w, a) u = Unsqueeze (k, one) h = Mul (x, u)",
    "wrong nodes are off the path": f"{WHERE} o = Where (m, q, c) p = Pow (o, c) h = Mul (x, p)",
    "wrong nodes do not reach the loss": f"{WHERE} o = Where (m, x, w) h = Mul (x, w)",
    "Transpose without perm": "a = Transpose (x) p = Mul (x, w) k = MatMul (a, p) h = MatMul (p, k)",
}  # fmt: skip
CONSTANTS = (
    "i0 = Constant <value = int64[1] {0}> () i2 = Constant <value = int64[1] {2}> () "
    "one = Constant <value = int64[1] {1}> () "
)


@needs_training
@pytest.mark.parametrize("name", RIGHT)
def test_correct_gradients_are_accepted(name):
    model = model_of(CONSTANTS + RIGHT[name])
    feeds = random_feed(model)
    ort, rules = (
        make_session(gradient_of_loss(model, "loss", ["x", "w"], backend), Device("cpu")).run(None, feeds)
        for backend in ("ort", "rules")
    )
    for got, expected in zip(ort, rules, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert np.abs(ort[1]).max() > 0


@needs_training
@pytest.mark.parametrize("keep_outputs", [False, True])
def test_weight_off_the_path_has_zero_gradient(keep_outputs):
    model = model_of("h = Mul (x, x) other = Neg (v)")
    ort, rules = (
        gradient_of_loss(model, "loss", ["v", "w", "c"], backend, keep_outputs)
        for backend in ("ort", "rules")
    )
    assert [value.name for value in ort.graph.input] == [value.name for value in rules.graph.input]
    assert [value.name for value in ort.graph.output] == ["loss", "v_grad", "w_grad", "c_grad"]
    feeds = random_feed(model)
    for got, expected in zip(run(ort, feeds), run(rules, feeds), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-4)
    nothing = gradient_of_loss(model, "loss", ["v"], "ort")
    np.testing.assert_array_equal(run(nothing, feeds)[1], np.zeros(2))


@needs_training
def test_errors_do_not_show_source_positions():
    model = model_of("pads = Constant <value_ints = [0, 1, 0, 1]> () p = Mul (x, w) "
                     'e = Pad <mode = "edge"> (p, pads) m = ReduceSum (e) h = Mul (x, m)')  # fmt: skip
    with pytest.raises(GradientError, match="onnxruntime-training could not differentiate") as caught:
        gradient_of_loss(model, "loss", ["w"], "ort")
    assert "onnxruntime_src" not in str(caught.value)


@needs_training
def test_float64_loss():
    model = parse("""g (double[N,2] x, double[2,1] w) => (double loss)
        { p = MatMul (x, w) t = Tanh (p) s = Mul (t, p) loss = ReduceSum <keepdims = 0> (s) }""")
    onx = gradient_of_loss(model, "loss", ["w"], "ort")
    assert [value.type.tensor_type.elem_type for value in onx.graph.output] == [11, 11]
    x, w = np.array([[0.5, -1], [2, 1]]), np.array([[0.3], [0.7]])
    loss, gradient = run(onx, {"x": x, "w": w})
    p = x @ w
    assert loss.dtype == gradient.dtype == np.float64
    np.testing.assert_allclose(loss, (np.tanh(p) * p).sum(), rtol=1e-14)
    np.testing.assert_allclose(gradient, x.T @ (np.tanh(p) + p / np.cosh(p) ** 2), rtol=1e-13)


@needs_training
@pytest.mark.parametrize("rows", ["N", "5"])
def test_mean_in_float64(rows):
    model = parse(f"g (double[{rows}] x) => (double loss) {{ loss = ReduceMean <keepdims = 0> (x) }}")
    _, gradient = run(gradient_of_loss(model, "loss", ["x"], "ort"), {"x": np.arange(5.0)})
    np.testing.assert_allclose(gradient, np.full(5, 0.2), rtol=1e-15)


def test_plain_onnxruntime(monkeypatch):
    pybind = ort_backend._pybind() if ort_backend.is_available() else None
    if pybind is not None:  # simulate a build without gradients
        monkeypatch.delattr(pybind, "GradientGraphBuilder")
    assert not ort_backend.is_available()
    model = model_of("h = Mul (x, w)")
    message = r"no gradient builder. Install onnxruntime-training: pip install 'ortlearn\[training\]'"
    with pytest.raises(MissingRuntimeError, match=message):
        gradient_of_loss(model, "loss", ["w"], "ort")
    with pytest.raises(ImportError, match=message):
        ort_backend.build_module_graphs(model, [], ["x"])
    gradient_of_loss(model, "loss", ["w"])


#: Operators whose gradient the C++ builder has for every record.
EVERYWHERE = set(
    "Abs Add Cast Concat Cos Div Erf Exp Expand Flatten Gather GatherElements GatherND Gemm "
    "GlobalAveragePool Identity LeakyRelu Log LogSoftmax Max Min Mul Neg PRelu Reciprocal ReduceMean "
    "ReduceSum Relu Reshape Sigmoid Sin Softmax Split Sqrt Squeeze Sub Tanh Tile Transpose Trilu Unsqueeze "
    # by built-in rules
    "Acos Acosh Asin Asinh Atan Atanh Cosh HardSwish Mish Sinh Softplus Softsign Tan".split()
)
#: Negative bases, whose powers have no logarithm; kernels missing or failing in 1.19.2.
NOT_RUN = ("Pow-3-3", "Slice-4x6-2-2-2-2", "Pad-4x3-2-1", "ConvTranspose")


@needs_training
@pytest.mark.parametrize("record", [r for r in RECORDS if not str(r).startswith(NOT_RUN)], ids=str)
def test_equal_to_rules(record):
    model, feeds, names = node_model(record, record.opsets[-1], np.float32)
    positions = range(len(names)) if record.wrt is None else record.wrt
    inputs = [names[i] for i in positions if names[i] in feeds and feeds[names[i]].dtype.kind == "f"]
    rules = onnx_derivative(model, [], inputs, backend="rules")
    try:
        ort = onnx_derivative(model, [], inputs, backend="ort")
    except GradientError:
        assert record.domain or record.op_type not in EVERYWHERE
        return
    feeds = {**feeds, **seeds_of(rules, model, feeds, run)}
    found = make_session(ort, Device("cpu")).run(None, feeds)
    for got, expected in zip(found, run(rules, feeds), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-4)
