"""Casts and quantisation on gradient paths: differentiated, rejected, or straight through."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ortlearn.differentiation import DerivativeOptions, gradient_of_loss, onnx_derivative, require_gradients
from ortlearn.differentiation.split import split_gradient_model
from ortlearn.exceptions import GradientError
from tests.differentiation.evaluation import run, run_onnxruntime, run_reference
from tests.differentiation.models import parse

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
BACKENDS = ["rules", pytest.param("ort", marks=pytest.mark.needs_training), "auto"]


def model_of(nodes, result="z", inputs="", opset=19):
    """Return a model with the loss sum(w * z), where z is a tensor (2, 3) computed from x."""
    return parse(
        f"""g (float[2,3] x, float[2,3] w{inputs}) => (float loss) {{
        {nodes} p = Mul({result}, w) loss = ReduceSum<keepdims=0>(p) }}""",
        opset,
    )


def gradient(model, runner=run_onnxruntime, names=("x",), straight_through=False, **feeds):
    backend = "straight_through" if straight_through else "rules"
    onx = gradient_of_loss(model, "loss", list(names), backend)
    found = runner(onx, {"x": X, "w": np.ones_like(X), **feeds})[1:]
    return found[0] if len(found) == 1 else found


@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_casts_between_floats_pass_the_gradient(to):
    model = model_of(f"s = Mul(x, x) h = Cast<to={to}>(s) z = Cast<to=1>(h)")
    np.testing.assert_allclose(gradient(model), 2 * X, rtol=1e-6)


@pytest.mark.parametrize("name", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"])
def test_casts_to_eight_bits_pass_the_gradient(name):
    to = getattr(TensorProto, name)
    model = model_of(f"s = Mul(x, x) h = Cast<to={to}>(s) z = Cast<to=1>(h)")
    np.testing.assert_allclose(gradient(model), 2 * X, rtol=1e-6)


def test_gradient_smaller_than_float16():
    model = model_of("h = Cast<to=10>(x) z = Cast<to=1>(h)")
    np.testing.assert_allclose(gradient(model, w=np.full_like(X, 1e-9)), np.full_like(X, 1e-9), rtol=1e-6)


def test_operators_in_float16():
    model = model_of("h = Cast<to=10>(x) k = Tanh(h) m = Mul(k, h) z = Cast<to=1>(m)")
    x = X.astype(np.float16).astype(np.float64)
    t = np.tanh(x)
    np.testing.assert_allclose(gradient(model), t + x * (1 - t**2), atol=3e-3)


def test_loop_in_float16():
    model = model_of("""h = Cast<to=10>(x)
        k = Loop (n, go, h) <body = b (int64 i, bool ci, float16[2,3] v) => (bool co, float16[2,3] next) {
            co = Identity(ci) next = Mul(v, h) }>
        z = Cast<to=1>(k)""", inputs=", int64 n, bool go")  # fmt: skip
    found = gradient(model, n=np.array(2), go=np.array(True))
    np.testing.assert_allclose(found, 3 * X**2, atol=2e-2)


def test_output_in_float16():
    model = parse("g (float[N] x) => (float16[N] y) { s = Mul(x, x) y = Cast<to=10>(s) }")
    x = np.array([1.0, -2.0], np.float32)
    seed = np.array([1, 0.5], np.float16)
    (found,) = run(onnx_derivative(model, backend="rules"), {"x": x, "y_grad": seed})
    np.testing.assert_array_equal(found, [2.0, -2.0])


ROUNDING = {
    "a cast to integers and back": ("k = Cast<to=7>(x) z = Cast<to=1>(k)", "'Cast'"),
    "integers that are computed with": (
        """k = Cast<to=6>(x) a = Add(k, k) s = Constant<value_ints=[2,3]>() b = Reshape(a, s)
        z = Cast<to=1>(b)""",
        "'Cast'",
    ),
    "truth values": ("k = Cast<to=9>(x) z = Cast<to=1>(k)", "'Cast'"),
    "quantisation": (
        "s = Constant<value_float=0.5>() k = QuantizeLinear(x, s) z = DequantizeLinear(k, s)",
        "'QuantizeLinear'",
    ),
    "a quantised product": (
        """k, s, o = DynamicQuantizeLinear(x) c = Constant<value = uint8[3,3] {1,0,0,0,1,0,0,0,1}>()
        m = MatMulInteger(k, c, o) f = Cast<to=1>(m) z = Mul(f, s)""",
        "'DynamicQuantizeLinear'",
    ),
    "a branch": (
        """c = Constant<value = bool {1}>() k = Cast<to=7>(x)
        z = If (c) <then_branch = t () => (float[2,3] a) { a = Cast<to=1>(k) },
                    else_branch = e () => (float[2,3] b) { b = Neg(x) }>""",
        "'Cast'",
    ),
    "a cast within a branch": (
        """c = Constant<value = bool {1}>()
        z = If (c) <then_branch = t () => (float[2,3] a) { k = Cast<to=7>(x) a = Cast<to=1>(k) },
                    else_branch = e () => (float[2,3] b) { b = Neg(x) }>""",
        "'Cast'",
    ),
    "integers that a loop carries": (
        """n = Constant<value_int=3>() go = Constant<value = bool {1}>() k = Cast<to=7>(x)
        j, v = Loop (n, go, k, x) <body = b (int64 i, bool ci, int64[2,3] k0, float[2,3] v0)
            => (bool co, int64[2,3] k1, float[2,3] v1) {
            co = Identity(ci) k1 = Cast<to=7>(v0) f = Cast<to=1>(k0) v1 = Add(v0, f) }>
        z = Identity(v)""",
        "'Cast'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ROUNDING)
def test_rounding_is_an_error(name, backend):
    nodes, named = ROUNDING[name]
    model = model_of(nodes)
    if backend == "ort" and any(word in nodes for word in ("Loop", " If ")):
        named = "has a subgraph|it rounds"
    with pytest.raises(GradientError, match=named):
        gradient_of_loss(model, "loss", ["x"], backend)


def test_both_backends_reject_rounding():
    model = model_of(ROUNDING["quantisation"][0])
    with pytest.raises(GradientError, match="'QuantizeLinear'"):
        onnx_derivative(model, options=DerivativeOptions.Loss, backend="rules")
    with pytest.raises(GradientError, match="'QuantizeLinear'"):
        split_gradient_model(model, ["x"])


@pytest.mark.parametrize(
    "nodes, expected",
    [
        # indices
        (
            """c = Constant<value_float=0.3>() o = Mul(x, c) k = Cast<to=7>(o) e = Exp(x)
            z = GatherElements<axis=1>(e, k)""",
            None,
        ),
        # labels in a loss with respect to the scores
        (
            """one = Constant<value_ints=[1]>() m = ReduceMean<keepdims=0, axes=[1]>(w)
            k = Cast<to=7>(m) l = SoftmaxCrossEntropyLoss(x, k) z = Mul(x, l)""",
            None,
        ),
        # a condition
        (
            """k = Cast<to=7>(x) n = Constant<value_int=0>() c = Greater(k, n) e = Exp(x)
            z = Where(c, e, x)""",
            None,
        ),
        # an index in a loop
        (
            """n = Constant<value_int=2>() go = Constant<value = bool {1}>() k = Cast<to=7>(x)
            z = Loop (n, go, x) <body = b (int64 i, bool ci, float[2,3] v0) => (bool co, float[2,3] v1) {
                co = Identity(ci) q = Constant<value_int=0>() p = Mul(k, q) g = GatherElements(v0, p)
                v1 = Add(v0, g) }>""",
            None,
        ),
    ],
    ids=["positions", "labels", "condition", "within a loop"],
)
def test_indices_and_labels_are_accepted(nodes, expected):
    model = model_of(nodes, opset=13)
    found = gradient(model, run)
    step = np.zeros_like(X)
    step[1, 2] = 1e-2
    feeds = {"w": np.ones_like(X)}
    up, down = (run(model, {"x": X + 0.05 + sign * step, **feeds})[0] for sign in (1, -1))
    found = gradient(model, run, x=X + np.float32(0.05))
    assert found[1, 2] == pytest.approx((up - down) / 2e-2, rel=1e-2)


SCALE = np.array([0.5, 0.25, 1.0], np.float32)


def fake_quantize(x, scale, zero, low, high):
    return (np.clip(np.round(x / scale) + zero, low, high) - zero) * scale


@pytest.mark.parametrize("opset", [13, 19, 21])
@pytest.mark.parametrize("kind, low, high", [("int8", -128, 127), ("uint8", 0, 255)])
def test_quantisation_straight_through(opset, kind, low, high):
    zero = {"int8": np.array([100, -100, 0], np.int8), "uint8": np.array([254, 2, 128], np.uint8)}[kind]
    model = model_of(
        "q = QuantizeLinear(x, s, o) z = DequantizeLinear(q, s, o)",
        inputs=f", float[3] s, {kind}[3] o",
        opset=opset,
    )
    x = np.array([[20.0, -10.0, 1.7], [-1.3, 3.3, -200.0]], np.float32)
    w = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    dx, ds = gradient(model, names=("x", "s"), straight_through=True, x=x, w=w, s=SCALE, o=zero)
    zero = zero.astype(float)
    level = np.round(x / SCALE) + zero
    inside = (level >= low) & (level <= high)
    np.testing.assert_allclose(dx, w * inside, rtol=1e-6)
    # LSQ (Esser et al., 2020): round(x / s) - x / s within the range, the bound minus z outside
    slope = np.where(inside, np.round(x / SCALE) - x / SCALE, np.clip(level, low, high) - zero)
    np.testing.assert_allclose(ds, (w * slope).sum(axis=0), rtol=1e-4)
    got = run_onnxruntime(model, {"x": x, "w": w, "s": SCALE, "o": np.asarray(zero, kind)})[0]
    np.testing.assert_allclose(got, (w * fake_quantize(x, SCALE, zero, low, high)).sum(), rtol=1e-5)


def test_quantisation_to_eight_bit_floats_straight_through():
    model = model_of(
        """o = Constant<value = float8e4m3fn {0}>() s = Constant<value_float=0.01>()
        q = QuantizeLinear(x, s, o) z = DequantizeLinear(q, s, o)""".replace("float8e4m3fn {0}", "float {0}")
    )
    zero = model.graph.node[0].attribute[0].t
    zero.CopyFrom(type(zero)(data_type=TensorProto.FLOAT8E4M3FN, int32_data=[0]))
    x = np.array([[1.0, -2.0, 3.0], [4.0, -5.0, 0.1]], np.float32)
    np.testing.assert_allclose(gradient(model, straight_through=True, x=x), np.abs(x) <= 4.48)


def test_scale_of_stored_integers():
    """A quantised weight is not rounded again, and its scale has a gradient."""
    model = model_of(
        "c = Constant<value = int8[2,3] {1,2,3,4,5,6}>() z = DequantizeLinear<axis=1>(c, s)",
        inputs=", float[3] s",
    )
    found = gradient(model, names=("s",), s=SCALE)
    np.testing.assert_allclose(found, [5, 7, 9])


def test_casts_straight_through():
    model = model_of("k = Cast<to=6>(x) a = Mul(k, k) z = Cast<to=1>(a)")
    np.testing.assert_allclose(gradient(model, straight_through=True), 2 * np.trunc(X))


def test_quantised_product_straight_through():
    model = model_of(ROUNDING["a quantised product"][0])
    # The product with the identity returns x, rounded to levels with a scale and zero point computed from x.
    found = gradient(model, straight_through=True)
    np.testing.assert_allclose(found, np.ones_like(X), atol=0.02)


def test_product_of_integers_straight_through():
    model = parse(
        """g (float[2,3] x, float[3,2] b, float p, float q, float[2,2] w) => (float loss) {
        i = Cast<to=2>(x) j = Cast<to=2>(b) k = Cast<to=2>(p) l = Cast<to=2>(q)
        m = MatMulInteger(i, j, k, l) f = Cast<to=1>(m) s = Mul(f, w) loss = ReduceSum<keepdims=0>(s) }""",
        19,
    )
    x, b, w = (
        np.arange(n, dtype=np.float32).reshape(shape) for n, shape in ((6, (2, 3)), (6, (3, 2)), (4, (2, 2)))
    )
    p, q = np.array(2, np.float32), np.array(3, np.float32)
    found = gradient(model, names="xbpq", straight_through=True, x=x, b=b, p=p, q=q, w=w)
    dx, db = w @ (b - q).T, (x - p).T @ w
    for got, expected in zip(found, (dx, db, -dx.sum(), -db.sum()), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_rounded_integers_in_subgraph_inputs_are_rejected():
    for name in ("a branch", "integers that a loop carries"):
        with pytest.raises(GradientError, match="inputs, outputs or states"):
            gradient(model_of(ROUNDING[name][0]), straight_through=True)


def test_straight_through_needs_rules():
    model = model_of(ROUNDING["quantisation"][0])
    with pytest.raises(ValueError, match="requires the built-in rules"):
        onnx_derivative(model, options=DerivativeOptions.Loss, backend="ort", straight_through=True)
    onx = onnx_derivative(model, options=DerivativeOptions.Loss, straight_through=True)
    assert run_reference(onx, {"x": X, "w": np.ones_like(X)})[-1].shape == X.shape


@pytest.mark.parametrize(
    "nodes",
    [
        "k = Cast<to=7>(x) z = Gather(c, k)",
        """k = Cast<to=7>(x) n = Constant<value_int=3>() v = Constant<value_floats=[0.0, 1.0]>()
        z = OneHot(k, n, v)""",
    ],
)
def test_error_of_weights_used_as_indices(nodes):
    model = parse(f"g (float[3] x, float[4] c) => (float l) {{ {nodes} l = ReduceSum<keepdims=0>(z) }}")
    with pytest.raises(GradientError, match=r"\['x'\] have no gradient: .* only through .*(Gather|OneHot)"):
        require_gradients(model, "l", ["x"])
