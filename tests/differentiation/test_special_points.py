"""Gradients at kinks, zeros, ties and large values."""

from __future__ import annotations

import numpy as np
import pytest

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.testing import check_gradient_rule, make_node_model
from tests.differentiation.evaluation import run, run_onnxruntime, run_reference
from tests.differentiation.models import parse


def gradients(op_type, *inputs, **options):
    """Return the gradients of the sum of the outputs."""
    model, feeds, names = make_node_model(op_type, *inputs, **options)
    wrt = [name for name in names if name in feeds and feeds[name].dtype.kind == "f"]
    return run(gradient_model(model, None, wrt, fill_ones=True), feeds)


def gradient(op_type, *inputs, **options):
    return gradients(op_type, *inputs, **options)[0]


@pytest.mark.parametrize("op_type, expected", [("Relu", 0), ("Abs", 0), ("LeakyRelu", 0.01), ("Sign", 0)])
def test_kink_at_zero(op_type, expected):
    np.testing.assert_allclose(gradient(op_type, np.zeros(2)), np.full(2, expected), rtol=1e-6)


@pytest.mark.parametrize("exponent, expected", [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (3.0, 0.0)])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_power_of_zero(exponent, expected, constants):
    found = gradient("Pow", np.zeros(2), np.array(exponent), constants=constants)
    np.testing.assert_array_equal(found, np.full(2, expected))


def test_exponent_of_zero():
    np.testing.assert_array_equal(gradients("Pow", np.zeros(2), np.array([2.0, 3.0]))[1], np.zeros(2))


@pytest.mark.parametrize("op_type", ["ReduceL2", "ReduceL1", "ReduceSumSquare"])
def test_norm_of_zeros(op_type):
    np.testing.assert_array_equal(gradient(op_type, np.zeros((2, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin", "GlobalMaxPool"])
def test_ties_share_the_gradient(op_type):
    found = gradient(op_type, np.ones((1, 1, 4)))
    np.testing.assert_array_equal(found, np.full((1, 1, 4), 0.25))


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_equal_operands_share_the_gradient(op_type):
    parts = gradients(op_type, np.ones(3), np.array([1.0, 2.0, 0.5]), np.ones(3))
    middle = {"Max": [1 / 3, 1, 0], "Min": [1 / 3, 0, 1]}[op_type]
    np.testing.assert_allclose(np.sum(parts, axis=0), np.ones(3))
    np.testing.assert_allclose(parts[1], middle)
    np.testing.assert_array_equal(parts[0], parts[2])


def test_product_with_zeros():
    x = np.array([[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0]])
    expected = [[12.0, 8.0, 6.0], [12.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(gradient("ReduceProd", x, np.array([1]), constants=(1,)), expected)


def test_gradient_of_zero_distances():
    model = parse(
        'g (double[2,3] a) => (double[2,2] d) { d = com.microsoft.CDist<metric="euclidean">(a, a) }'
    )
    model.opset_import.add(domain="com.microsoft", version=1)
    (found,) = run(gradient_model(model, None, ["a"], fill_ones=True), {"a": np.ones((2, 3))})
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


@pytest.mark.parametrize(
    "op_type",
    ["Softplus", "Sigmoid", "Tanh", "Elu", "Selu", "Softsign", "HardSwish", "Erf", "Softmax", "LogSoftmax"],
)
def test_large_values(op_type):
    x = np.array([[-800.0, 0.3, 800.0]])
    assert np.isfinite(gradient(op_type, x)).all()


def test_where_blocks_infinite_gradients():
    model = parse("""g (double[3] x) => (double y) <double zero = {0.0}, double one = {1.0}> {
        c = Greater(x, zero) s = Where(c, x, one) l = Log(s) w = Where(c, l, zero)
        y = ReduceSum<keepdims=0>(w) }""")
    _, dx = run(gradient_model(model, "y", ["x"]), {"x": np.array([0.0, -1.0, 2.0])})
    np.testing.assert_array_equal(dx, [0.0, 0.0, 0.5])


def test_unused_outputs():
    model = parse("""g (double[N,4] x) => (double y) <int64[3] sizes = {1, 2, 1}> {
        a, b, c = Split<axis=1>(x, sizes) e = Exp(b) y = ReduceSum<keepdims=0>(e) }""")
    x = np.arange(8.0).reshape(2, 4) / 8
    _, dx = run(gradient_model(model, "y", ["x"]), {"x": x})
    np.testing.assert_allclose(dx[:, 1:3], np.exp(x[:, 1:3]))
    np.testing.assert_array_equal(dx[:, [0, 3]], 0)


def test_values_used_many_times():
    model = parse("""g (double[2,2] x) => (double y) {
        a = MatMul(x, x) b = Sum(a, x, x, a) c = Mul(b, b) y = ReduceSum<keepdims=0>(c) }""")
    x = np.array([[0.5, -1.0], [2.0, 0.25]])
    _, dx = run(gradient_model(model, "y", ["x"]), {"x": x})
    db = 2 * (2 * x @ x + 2 * x)
    np.testing.assert_allclose(dx, 2 * db + 2 * db @ x.T + 2 * x.T @ db)


@pytest.mark.parametrize("sizes", ["static", "symbolic"])
@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,ij->ij", ((1, 3), (2, 3))),
        ("ij,ij->j", ((1, 3), (2, 3))),
        ("ij,ij->", ((1, 3), (2, 3))),
        ("ij,ij->i", ((2, 1), (2, 3))),
        ("ij,jk->ik", ((2, 1), (3, 4))),
        ("ij,ij,ij->j", ((1, 3), (2, 1), (2, 3))),
        ("ii,i->", ((3, 3), (1,))),
        ("...i,...i->...", ((2, 1, 3), (4, 3))),
        ("i...,i...->...", ((3, 2), (3, 1))),
        ("...ij,...jk", ((2, 1, 1, 3), (5, 3, 2))),
    ],
)
def test_einsum_that_broadcasts_an_axis(equation, shapes, sizes):
    """onnx infers a wrong shape for some equations, on which later nodes depend."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in shapes]
    names = "abc"[: len(shapes)]
    dims = [
        [f"{name}{i}" if sizes == "symbolic" else dim for i, dim in enumerate(shape)]
        for name, shape in zip(names, shapes, strict=True)
    ]
    inputs = ", ".join(f"double[{','.join(map(str, d))}] {n}" for n, d in zip(names, dims, strict=True))
    model = parse(f"""g ({inputs}, double[1] t) => (double y) {{
        e = Einsum<equation="{equation}">({", ".join(names)}) s = Tanh(e) m = Mul(s, t)
        y = ReduceSum<keepdims=0>(m) }}""")
    check_gradient_rule(model, *values, np.array([0.7]), run=run)


@pytest.mark.parametrize("order", [1, 2])
def test_normalized_row_of_zeros(order):
    x = np.array([[0.0, 0.0], [3.0, -4.0]], dtype=np.float32)
    model, feeds, names = make_node_model("LpNormalization", x, attributes={"p": order})
    (found,) = run_onnxruntime(gradient_model(model, None, names, fill_ones=True), feeds)
    np.testing.assert_array_equal(found[0], 0)
    assert np.abs(found[1]).max() > 0


def test_distances_between_the_same_points():
    """Gradients of the zero distances of points to themselves must not dominate."""
    model = parse("""g (double[3,2] a, double[3,3] w) => (double y) {
        d = com.microsoft.CDist<metric="euclidean">(a, a) m = Mul(d, w) y = ReduceSum<keepdims=0>(m) }""")
    model.opset_import.add(domain="com.microsoft", version=1)
    rng = np.random.default_rng(0)
    check_gradient_rule(model, rng.normal(size=(3, 2)), rng.normal(size=(3, 3)), wrt=[0], run=run_reference)
