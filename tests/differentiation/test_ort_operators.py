"""Operators in every use of the C++ builder are correct or rejected, and the process survives."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.differentiation import gradient_of_loss, onnx_derivative
from ortlearn.exceptions import GradientError
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

pytestmark = pytest.mark.needs_training


def counts_of(*arguments):
    """Return the number of cases by outcome; only cases without rows may fail."""
    command = [sys.executable, "-m", "tests.differentiation.ort_operators", *arguments]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    # kernels of onnxruntime reject tensors without rows at run time
    assert [bad for bad in found["bad"] if bad[1] != "failed" or "|empty|" not in bad[0]] == []
    return found["counts"]


#: Operators whose gradients terminate the process without rewrites: empty tensors, or pools with named sizes.
DEADLY = [
    "MaxPool-2x3x6x5-kernel_shape=[[]2,3*|18|",
    "AveragePool-2x3x6x5-kernel_shape=[[]3*|19|",
    "Conv-2x3x7-*|21|",
    *(
        f"|{name}*|21|empty|derivative"
        for name in ("GatherND", "ReduceMean-2x3x4-1", "LogSoftmax", "LayerNorm")
    ),
]


@pytest.mark.slow
def test_forms_that_terminated_the_process():
    counts = counts_of("--only", *DEADLY)
    assert counts["right"] > 40


@pytest.mark.slow
def test_every_operator():
    # a step coprime to the numbers of sizes and uses covers all of them
    counts = counts_of("--every", "41")
    assert counts["right"] > 400 and counts["refused"] > 80


IMAGES = """g (float[N,32] x) => (float[N,1] y)
<float[4,2,3,3] w = {{{w}}}, float[{width},1] v = {{{v}}},
 int64[4] s = {{-1, 2, 4, 4}}, int64[2] t = {{-1, {width}}}> {{
    i = Reshape (x, s) c = Conv <pads = [1, 1, 1, 1]> (i, w) {body} f = Reshape (p, t) y = MatMul (f, v) }}"""
POOLS = {
    "MaxPool <kernel_shape = [2, 2], strides = [2, 2]>": 16,
    "AveragePool <kernel_shape = [2, 2], strides = [2, 2]>": 16,
    "AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]>": 64,
    "GlobalAveragePool": 4,
}


def numbers(rng, count):
    return ", ".join(map(str, rng.normal(size=count).round(3)))


@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("between", ["r = Identity (c)", "r = Relu (c)"])
def test_networks_of_images_train(optimizer, pool, between):
    rng = np.random.default_rng(0)
    width = POOLS[pool]
    body = f"{between} p = {pool} (r)"
    text = IMAGES.format(w=numbers(rng, 72), v=numbers(rng, width), width=width, body=body)
    X = rng.normal(size=(23, 32)).astype(np.float32)
    y = X[:, 0] * X[:, 1]
    predicted = [
        optimizer(parse(text), gradient=gradient, max_iter=2, random_state=0, warm_start=True)
        .fit(X, y)
        .predict(X)
        for gradient in ("ort", "rules")
    ]
    np.testing.assert_allclose(*predicted, rtol=1e-3, atol=1e-4)
    assert np.ptp(predicted[0]) > 0


@pytest.mark.parametrize(
    "operator, shape, reason",
    [
        ("AveragePool <kernel_shape = [2, 2]>", "N,C,8,8", "unknown"),
        ("AveragePool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>", "N,3,8,8", "rounded up"),
        ("GatherND", "N,3,8,8", "its sizes are unknown"),
    ],
)
def test_unknown_sizes_are_rejected(operator, shape, reason):
    second = ", i" if operator == "GatherND" else ""
    model = parse(f"g (float[{shape}] x, int64[2,3] i) => (float[A,B] y) {{ y = {operator} (x{second}) }}")
    with pytest.raises(GradientError, match=reason):
        onnx_derivative(model, backend="ort")


@pytest.mark.parametrize(
    "operator", ["ConvTranspose", "Resize", "com.microsoft.FastGelu", "com.microsoft.Relu"]
)
def test_gradients_without_kernels_are_rejected(operator):
    domain, _, name = operator.rpartition(".")
    node = helper.make_node(name, ["x", "w"], ["y"], domain=domain, name="bad")
    values = [helper.make_tensor_value_info(name, 1, ["N", 2, 3, 3]) for name in "xwy"]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(
        helper.make_graph([node], "g", values[:2], values[2:]), opset_imports=opsets, ir_version=8
    )
    with pytest.raises(GradientError, match=rf"no correct gradient of {name} \(node 'bad'\)"):
        onnx_derivative(model, backend="ort")


#: Operators that broadcast, with shapes of x and q in which a named dimension is one.
BROADCAST = {
    **{
        f"y = {name} (x, q)": [((1, 2), (3, 2)), ((3, 2), (1, 2)), ((3, 2), (3, 2)), ((1, 2), (1, 2)),
                               ((3, 2), (3, 1)), ((1, 2), (3, 1))]
        for name in ("Add", "Sub", "Mul", "Div", "Max", "PRelu", "Pow")
    },
    "m = Greater (x, q) y = Where (m, x, q)": [((1, 2), (3, 2)), ((3, 2), (3, 1))],
    "t = Transpose (x) y = Gemm (x, t, q)": [((3, 2), (1, 3)), ((3, 2), (3, 1)), ((3, 2), (3, 3))],
    "s = Shape (q) y = Expand (x, s)": [((1, 2), (3, 2)), ((3, 2), (3, 2)), ((3, 2), (1, 1))],
    "one = Constant <value_ints = [1]> () u = Unsqueeze (x, one) o = Unsqueeze (q, one) "
    "t = Transpose <perm = [0, 2, 1]> (o) y = MatMul (u, t)": [((1, 2), (3, 2)), ((3, 2), (1, 2))],
}  # fmt: skip


@pytest.mark.parametrize("body, shapes", [(body, shapes) for body in BROADCAST for shapes in BROADCAST[body]])
def test_named_dimensions_of_length_one(body, shapes):
    if "PRelu" in body and shapes[0][0] < shapes[1][0]:
        return  # its slope is broadcast in one direction only
    model = parse(f"""g (float[N,2] x, float[M,K] q) => (float loss) {{
        {body} a = Tanh (y) loss = ReduceSum <keepdims = 0> (a) }}""")
    rng = np.random.default_rng(0)
    x, q = (rng.uniform(0.5, 2, size=shape).astype(np.float32) for shape in shapes)
    feeds = {"x": x, "q": q}
    wrt = ["x"] if "Expand" in body else ["x", "q"]
    ort, rules = (
        run_onnxruntime(gradient_of_loss(model, "loss", wrt, backend), feeds) for backend in ("ort", "rules")
    )
    for got, expected in zip(ort, rules, strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "x, back, past, first, step",
        "x, last, none, second, step",
        "x, far, past, first, two",
        "x, both, ends, axes, steps",
    ],
)
def test_slices_with_negative_steps(text):
    model = parse(f"""g (float[4,6] x) => (float[A,B] y)
        <int64[1] back = {{-1}}, int64[1] past = {{-9}}, int64[1] first = {{0}}, int64[1] step = {{-1}},
         int64[1] last = {{5}}, int64[1] none = {{0}}, int64[1] second = {{1}}, int64[1] far = {{100}},
         int64[1] two = {{-2}}, int64[2] both = {{1, 5}}, int64[2] ends = {{4, -6}},
         int64[2] axes = {{0, -1}},
         int64[2] steps = {{2, -2}}> {{ t = Tanh (x) y = Slice ({text.replace("x", "t", 1)}) }}""")
    feeds = {"x": np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)}
    plain = onnx_derivative(model, [], backend="rules")
    shape = run_onnxruntime(model, feeds)[0].shape
    feeds["y_grad"] = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    found = run_onnxruntime(onnx_derivative(model, [], backend="ort"), feeds)[0]
    np.testing.assert_allclose(found, run_onnxruntime(plain, feeds)[0], rtol=1e-5, atol=1e-6)
    assert np.abs(found).max() > 0


def test_gelu_by_tanh():
    model = parse('g (float[N] x) => (float[N] y) { y = Gelu <approximate = "tanh"> (x) }', 20)
    x = np.linspace(-3, 3, 41).astype(np.float32)
    feeds = {"x": x, "y_grad": np.ones_like(x)}
    found, expected = (
        run_onnxruntime(onnx_derivative(model, backend=backend), feeds)[0] for backend in ("ort", "rules")
    )
    np.testing.assert_allclose(found, expected, atol=2e-6)
