"""If, Loop and Scan against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.testing import check_gradient_rule
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(2, 3)), RNG.normal(size=3)

IF = """g (double[N,3] x, double[3] w, bool c) => (double[N,3] z) {
    z = If (c) <
        then_branch = t () => (double[N,3] a) { b = Mul(x, w) a = Exp(b) },
        else_branch = e () => (double[N,3] d) { d = Neg(x) }>
}"""

LOOP = """g (double[N,3] x, double[3] w, int64 n, bool go) => (double[N,3] z, double[K,N,3] trace) {
    z, trace = Loop (n, go, x) <body = b (int64 i, bool ci, double[N,3] v)
        => (bool co, double[N,3] next, double[N,3] kept) {
        co = Identity(ci) a = Mul(v, w) next = Tanh(a) f = Cast<to=11>(i) kept = Mul(next, f) }>
}"""

# The loop has an integer state, stops by its condition, and has a sum as state.
WHILE = """g (double[3] x, double[3] w) => (double[3] z, double[3] s)
    <int64 zero = {0}, int64 three = {3}, int64 one = {1}, bool yes = {1},
    double[3] start = {0.0, 0.0, 0.0}> {
    k, z, s = Loop ("", yes, zero, x, start) <body = b (int64 i, bool ci, int64 k0, double[3] v, double[3] s0)
        => (bool co, int64 k1, double[3] v1, double[3] s1) {
        k1 = Add(k0, one) co = Less(k1, three) a = Mul(v, w) v1 = Sigmoid(a) q = Mul(v1, v) s1 = Add(s0, q) }>
}"""

NESTED = """g (double[3] x, double[3] w, int64 n, bool go) => (double[3] z) {
    z = Loop (n, go, x) <body = b (int64 i, bool ci, double[3] v) => (bool co, double[3] next) {
        co = Identity(ci) zero = Constant<value_int=0>() first = Equal(i, zero)
        next = If (first) <
            then_branch = t () => (double[3] a) { p = Mul(v, w) a = Sigmoid(p) },
            else_branch = e () => (double[3] d) { r = Add(v, w) d = Tanh(r) }> }>
}"""

SCAN = """g (double[3] s0, double[3,5] x, double[3] w) => (double[3] s, double[3,5] o) {
    s, o = Scan (s0, x) <num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1],
        scan_input_directions=[%d], scan_output_directions=[%d],
        body = b (double[3] s1, double[3] xi) => (double[3] s2, double[3] yi) {
        a = Mul(s1, w) c = Add(a, xi) s2 = Tanh(c) yi = Mul(s2, xi) }>
}"""

# The body reads the initial state too: x^4 after three iterations.
CAPTURED = """g (double[3] x, int64 n, bool go) => (double[3] z) {
    z = Loop (n, go, x) <body = b (int64 i, bool ci, double[3] v) => (bool co, double[3] next) {
        co = Identity(ci) next = Mul(v, x) }>
}"""

CAPTURED_SCAN = """g (double[3] x, double[4,3] q) => (double[3] z, double[4,3] o) {
    z, o = Scan (x, q) <num_scan_inputs=1, body = b (double[3] v, double[3] r)
        => (double[3] next, double[3] kept) {
        zero = Constant<value_int=0>() first = Gather<axis=0>(q, zero) a = Mul(v, x) b = Mul(r, first)
        next = Add(a, b) kept = Mul(next, x) }>
}"""

YES = np.array(True)

CASES = {
    "if-then": (IF, (X, W, np.array(True)), (0, 1)),
    "if-else": (IF, (X, W, np.array(False)), (0, 1)),
    "loop": (LOOP, (X, W, np.array(4), YES), (0, 1)),
    "loop-never": (LOOP, (X, W, np.array(0), YES), (0, 1)),
    "while": (WHILE, (W, X[0]), (0, 1)),
    "captured": (CAPTURED, (X[0], np.array(3), YES), (0,)),
    "captured-scan": (CAPTURED_SCAN, (X[0], RNG.normal(size=(4, 3))), (0, 1)),
    "nested": (NESTED, (W, X[0], np.array(3), YES), (0, 1)),
    **{
        f"scan-{read}-{write}": (SCAN % (read, write), (W, RNG.normal(size=(3, 5)), X[0]), (0, 1, 2))
        for read in (0, 1)
        for write in (0, 1)
    },
}


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("name", CASES)
def test_finite_differences(name, opset):
    text, values, wrt = CASES[name]
    check_gradient_rule(parse(text, opset), *values, wrt=wrt, run=run_onnxruntime)


@pytest.mark.parametrize(
    "name", ["if-then", "if-else", "loop", "while", "nested", "scan-0-0", "captured", "captured-scan"]
)
def test_second_derivative(name):
    text, values, wrt = CASES[name]
    model = parse(text)
    names = [value.name for value in model.graph.input]
    onx = gradient_model(model, None, [names[i] for i in wrt])
    feeds = dict(zip(names, values, strict=True))
    outputs = dict(zip([o.name for o in model.graph.output], run_onnxruntime(model, feeds), strict=True))
    for value in onx.graph.input:
        if value.name not in feeds:
            feeds[value.name] = RNG.normal(size=outputs[value.name.removesuffix("_grad")].shape)
    ordered = [feeds[value.name] for value in onx.graph.input]
    check_gradient_rule(onx, *ordered, wrt=wrt, run=run_onnxruntime, rtol=1e-5)


def test_unused_tensor_of_a_branch_has_zero_gradient():
    onx = gradient_model(parse(IF), None, ["x", "w"])
    checker.check_model(onx, full_check=True)
    feeds = {"x": X, "w": W, "c": np.array(False), "z_grad": np.ones_like(X)}
    dx, dw = run_onnxruntime(onx, feeds)
    np.testing.assert_array_equal(dx, -np.ones_like(X))
    np.testing.assert_array_equal(dw, np.zeros(3))


def test_loss_after_a_loop():
    text = LOOP.replace("=> (double[N,3] z, double[K,N,3] trace)", "=> (double y)", 1)
    text = text[: text.rindex("}")] + "y = ReduceSum<keepdims=0>(z) }"
    onx = gradient_model(parse(text), "y", ["w"])
    feeds = {"x": X, "n": np.array(3), "go": YES}
    _, dw = run_onnxruntime(onx, {**feeds, "w": W})
    up, down = (run_onnxruntime(onx, {**feeds, "w": W + h})[0] for h in (1e-6, -1e-6))
    assert dw.sum() == pytest.approx((up - down) / 2e-6, rel=1e-6)
