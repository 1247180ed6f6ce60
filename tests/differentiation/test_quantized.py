"""Straight-through gradients of quantised operators."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from ortlearn.differentiation import gradient_of_loss
from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.exceptions import GradientError
from ortlearn.testing import check_gradient_rule
from tests.differentiation.evaluation import run_onnxruntime

HEADER = '<ir_version: 9, opset_import: ["": 19, "com.microsoft": 1]>'
STORED = """<float s = {0.02}, uint8 z = {120}, float t = {0.05}, uint8 o = {128}, float[2] u = {0.02, 0.03},
            int8[2] p = {0, 0}"""
RNG = np.random.default_rng(0)


def differentiate(text, feeds):
    """Return the loss and its gradients with respect to the floating-point inputs of a graph."""
    model = parser.parse_model(f"{HEADER} g {text}")
    names = [name for name, value in feeds.items() if value.dtype == np.float32 and name != "w"]
    return run_onnxruntime(gradient_of_loss(model, "loss", names, "straight_through"), feeds), model


def test_product():
    graph = f"""(float[N,3] x, float[N,2] w) => (float loss) {STORED},
        int8[3,2] k = {{10, -20, 30, 40, -50, 60}}> {{
        q = QuantizeLinear (x, s, z) m = QLinearMatMul (q, s, z, k, u, p, t, o)
        y = DequantizeLinear (m, t, o) c = Mul (y, w) loss = ReduceSum <keepdims = 0> (c) }}"""
    x, w = RNG.uniform(-2, 2, size=(4, 3)).astype(np.float32), RNG.normal(size=(4, 2)).astype(np.float32)
    (loss, dx), model = differentiate(graph, {"x": x, "w": w})
    weights = np.array([[10, -20], [30, 40], [-50, 60]]) * [0.02, 0.03]
    np.testing.assert_allclose(dx, w @ weights.T, rtol=1e-5)
    np.testing.assert_allclose(loss, (x @ weights * w).sum(), atol=0.5)
    # With the rounding of onnxruntime's kernel.
    (expected,) = run_onnxruntime(model, {"x": x, "w": w})
    np.testing.assert_allclose(loss, expected, atol=0.06 * np.abs(w).max())
    with pytest.raises(GradientError, match="it rounds"):
        gradient_of_loss(model, "loss", ["x"], "rules")


@pytest.mark.parametrize("integers", [False, True])
def test_convolution(integers):
    if integers:
        product = "i = ConvInteger (q, l, z, n) f = Cast <to = 1> (i) y = Mul (f, r)"
    else:
        product = "m = QLinearConv (q, s, z, k, u, p, t, o, b) y = DequantizeLinear (m, t, o)"
    graph = f"""(float[N,1,5] x, float[N,2,4] w) => (float loss) {STORED}, int32[2] b = {{100, -200}},
        int8[2,1,2] k = {{10, -20, 30, 40}}, uint8[2,1,2] l = {{60, 30, 80, 90}}, uint8 n = {{50}},
        float[1,2,1] r = {{0.0004, 0.0006}}> {{
        q = QuantizeLinear (x, s, z) {product} c = Mul (y, w) loss = ReduceSum <keepdims = 0> (c) }}"""
    x = RNG.uniform(-2, 2, size=(3, 1, 5)).astype(np.float32)
    w = RNG.normal(size=(3, 2, 4)).astype(np.float32)
    (loss, dx), model = differentiate(graph, {"x": x, "w": w})
    weights = np.array([[10, -20], [30, 40]]) * [[0.02], [0.03]]
    parts = [np.einsum("nct,c->nt", w, weights[:, i]) for i in (0, 1)]
    expected = sum(np.pad(part, [(0, 0), (i, 1 - i)]) for i, part in enumerate(parts))
    np.testing.assert_allclose(dx[:, 0], expected, rtol=1e-4, atol=1e-5)
    kernel = run_onnxruntime(model, {"x": x, "w": w})[0]
    np.testing.assert_allclose(loss, kernel, atol=0.06 * np.abs(w).max())


@pytest.mark.parametrize(
    "node, slope",
    [
        ("QLinearAdd (q, s, z, k, u, o, t, o)", lambda x, k: np.ones_like(x)),
        ("QLinearMul (q, s, z, k, u, o, t, o)", lambda x, k: k * np.ones_like(x)),
        ("QLinearLeakyRelu <alpha = 0.5> (q, s, z, t, o)", lambda x, k: np.where(x > 0, 1, 0.5)),
        ("QLinearSigmoid (q, s, z, t, o)", lambda x, k: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    ],
)
def test_elementwise_operators(node, slope):
    graph = f"""(float[N,3] x, float[N,3] w) => (float loss)
        <float s = {{0.02}}, uint8 z = {{120}}, float t = {{0.05}}, uint8 o = {{128}}, float u = {{0.02}},
         uint8[3] k = {{130, 100, 180}}> {{
        q = QuantizeLinear (x, s, z) m = com.microsoft.{node} y = DequantizeLinear (m, t, o)
        c = Mul (y, w) loss = ReduceSum <keepdims = 0> (c) }}"""
    x = RNG.uniform(0.1, 2, size=(4, 3)).astype(np.float32) * [1, -1, 1]
    x, w = x.astype(np.float32), RNG.normal(size=(4, 3)).astype(np.float32)
    (loss, dx), model = differentiate(graph, {"x": x, "w": w})
    stored = (np.array([130, 100, 180]) - 128.0) * 0.02
    np.testing.assert_allclose(dx, w * slope(np.round(x / 0.02) * 0.02, stored), rtol=1e-4)
    np.testing.assert_allclose(loss, run_onnxruntime(model, {"x": x, "w": w})[0], atol=0.11 * np.abs(w).sum())


def test_product_to_floats():
    graph = """(float[N,3] x, float[2] b, float[N,2] w) => (float loss) <float s = {0.02}, uint8 z = {120},
        float[2] u = {0.02, 0.03}, int8[3,2] k = {10, -20, 30, 40, -50, 60}> {
        q = com.microsoft.QuantizeLinear (x, s, z)
        y = com.microsoft.MatMulIntegerToFloat (q, k, s, u, z, , b)
        c = Mul (y, w) loss = ReduceSum <keepdims = 0> (c) }"""
    x, w = RNG.uniform(-2, 2, size=(4, 3)).astype(np.float32), RNG.normal(size=(4, 2)).astype(np.float32)
    b = RNG.normal(size=2).astype(np.float32)
    (_, dx, db), _ = differentiate(graph, {"x": x, "b": b, "w": w})
    weights = np.array([[10, -20], [30, 40], [-50, 60]]) * [0.02, 0.03]
    np.testing.assert_allclose(dx, w @ weights.T, rtol=1e-5)
    np.testing.assert_allclose(db, w.sum(axis=0), rtol=1e-5)


def test_scales_of_stored_integers():
    model = parser.parse_model(f"""{HEADER} g (float s) => (float[3] y)
        <int8[3] k = {{10, -20, 30}}, int8 o = {{5}}> {{ y = com.microsoft.DequantizeLinear (k, s, o) }}""")
    onx = gradient_model(model, None, ["s"], fill_ones=True)
    (found,) = run_onnxruntime(onx, {"s": np.array(0.1, np.float32)})
    np.testing.assert_allclose(found, 5.0, rtol=1e-6)


def test_weights_of_four_bits():
    packed = RNG.integers(0, 256, size=(8, 1, 8), dtype=np.uint8)
    scales = RNG.uniform(0.1, 0.3, size=8).astype(np.float32)
    model = parser.parse_model(f"""{HEADER}
        g (float[N,2,16] x, uint8[8,1,8] k, float[8] s) => (float[N,2,8] y) {{
        y = com.microsoft.MatMulNBits <K = 16, N = 8, bits = 4, block_size = 16> (x, k, s) }}""")
    x = RNG.normal(size=(3, 2, 16)).astype(np.float32)
    options = {"step": 1e-2, "rtol": 5e-3, "atol": 1e-3}
    check_gradient_rule(model, x, packed, scales, wrt=[0], run=run_onnxruntime, **options)
    with pytest.raises(GradientError, match="scales"):
        gradient_model(model, None, ["s"])


def test_dynamic_quantisation_is_rejected_with_advice():
    model = parser.parse_model(f"""{HEADER} g (float[2,3] x) => (float[2,3] y) {{
        q, s, z = DynamicQuantizeLinear (x) y = DequantizeLinear (q, s, z) }}""")
    with pytest.raises(GradientError, match="QuantizeLinear whose scale is stored, from calibration"):
        gradient_model(model, None, ["x"])
