"""Rewritten graphs, for which the C++ builder is correct."""

from __future__ import annotations

import numpy as np
import pytest

from ortlearn.differentiation import DerivativeOptions, gradient_of_loss, onnx_derivative
from ortlearn.differentiation.ort_rewrites import REWRITES, rewrite_for_ort
from ortlearn.differentiation.random_feed import random_feed
from ortlearn.graphs import make_initializers_of
from tests.differentiation.evaluation import run, run_onnxruntime
from tests.differentiation.models import parse
from tests.differentiation.records import RECORDS

needs_training = pytest.mark.needs_training
KEPT = DerivativeOptions.KeepOutputs | DerivativeOptions.FillGrad

HEAD = "g ({0}[3,2] x, {0}[2] w, {0}[3,2] q, {0}[1,2] c, {0}[2] v) => ({0} loss)"
LAST = "s = Tanh (h) t = Mul (s, w) loss = ReduceSum <keepdims = 0> (t)"
SCALAR = "s = Tanh (h) loss = ReduceSum <keepdims = 0> (s)"
#: Prefix of every graph.
CONSTANTS = (
    "one = Constant <value = int64[1] {{1}}> () two = Constant <value = int64[2] {{1, 1}}> () "
    "i = Constant <value = int64[3,1] {{0, 0, 2}}> () "
    "half = Constant <value = {0}[1] {{0.5}}> () m = Greater (q, half) "
    "low = Constant <value_float = 0.3> () high = Constant <value_float = 0.9> () "
    "r = Sub (x, q) p = Mul (r, w) "
)  # fmt: skip

#: Graphs from x, w, q and v to h.
GRAPHS = {
    "MatMul by a vector": ("h = MatMul (p, v)", SCALAR),
    "MatMul of a vector by three axes": ("a = Unsqueeze (p, one) b = Transpose <perm = [0, 2, 1]> (a) "
                                         "h = MatMul (v, b)", SCALAR),
    "MatMul of two vectors": ("d = MatMul (v, w) h = Mul (x, d)", LAST),
    "Where with a broadcast branch": ("h = Where (m, p, w)", LAST),
    "Where with two": ("h = Where (m, v, w)", LAST),
    "Where of scalars": ("a = ReduceSum <keepdims = 0> (w) b = Where (m, a, v) h = Mul (b, x)", LAST),
    "Pow with a broadcast base": ("h = Pow (w, q)", LAST),
    "Pow with a broadcast exponent": ("h = Pow (x, w)", LAST),
    "Pow of a weight on both sides": ("h = Pow (w, w) k = Mul (x, h)", LAST),
    "Pow of a constant": ("a = Pow (half, w) h = Mul (p, a)", LAST),
    "Pow of whole numbers": ("k = Constant <value = int64[1] {{3}}> () h = Pow (p, k)", LAST),
    "Pow of a weight by whole numbers": ("k = Constant <value = int64[3,2] {{1, 2, 3, 4, 0, 1}}> () "
                                         "h = Pow (w, k)", LAST),
    "Einsum of columns": ('a = Einsum <equation = "ij,ij->j"> (p, q) h = Mul (x, a)', LAST),
    "Einsum of elements": ('h = Einsum <equation = "ij, ij -> ij"> (p, q)', LAST),
    "Split with an unused output": ("h, other = Split <axis = 1, num_outputs = 2> (p)", LAST),
    "Split of sizes": ("h, k = Split <axis = -1> (p, two)", LAST),
    "Split off the way": ("h, k = Split <axis = 1, num_outputs = 2> (p) n = Shape (k)", LAST),
    "slices, one off the way": ("s0 = Constant <value_ints = [0]> () s2 = Constant <value_ints = [2]> () "
                                "f = Slice (p, s0, one, one) g0 = Slice (p, one, s2, one) "
                                "k = Greater (g0, f) n = Where (k, q, v) h = Mul (f, n)", LAST),
    "columns, one unread": ("k0 = Constant <value_int = 0> () k1 = Constant <value_int = 1> () "
                            "f = Gather <axis = 1> (p, k0) g0 = Gather <axis = 1> (p, k1) "
                            "h = Unsqueeze (f, one)", LAST),
    "ScatterND that adds": ('h = ScatterND <reduction = "add"> (x, i, p)', LAST),
    "ScatterElements that adds": ('h = ScatterElements <axis = 1, reduction = "add"> (p, z0, q) ', LAST),
    "ScatterND that adds to constants": ('a = Shape (x) z = ConstantOfShape (a) b = CastLike (z, x) '
                                         'h = ScatterND <reduction = "add"> (b, i, p)', LAST),
    "Sum of one": ("h = Sum (p)", LAST),
    "Sum of three": ("h = Sum (p, x, v)", LAST),
    "Mean of three": ("h = Mean (p, x, v)", LAST),
    "a tensor read twice": ("h = Mul (v, v)", LAST),
    "a square": ("h = ReduceSumSquare (w) k = Mul (x, x)", LAST),
    "Clip between weights": ("a = ReduceMin <keepdims = 0> (v) b = ReduceMax <keepdims = 0> (w) "
                             "h = Clip (p, a, b)", LAST),
    "Clip above a weight": ('a = ReduceMin <keepdims = 0> (v) b = Mul (x, q) h = Clip (b, a)', LAST),
    "Pad with a weight": ("a = ReduceSum <keepdims = 0> (w) k = Constant <value_ints = [1, 0, 0, 1]> () "
                          "h = Pad (p, k, a)", SCALAR),
    "ReduceMax": ("h = ReduceMax (p, one)", LAST),
    "ReduceMin of everything": ("a = ReduceMin <keepdims = 0> (p) h = Mul (x, a)", LAST),
    "ReduceL1": ("a = ReduceL1 <keepdims = 0> (p, one) h = Unsqueeze (a, one)", LAST),
    "ReduceL2": ("a = ReduceL2 <keepdims = 0> (p, one) h = Unsqueeze (a, one)", LAST),
    "ReduceLogSum": ("h = ReduceLogSum (q, one)", LAST),
    "ReduceLogSumExp": ("a = ReduceLogSumExp <keepdims = 0> (p, one) h = Unsqueeze (a, one)", LAST),
    "ReduceLogSumExp of everything": ("a = ReduceLogSumExp <keepdims = 0> (p) h = Mul (a, x)", LAST),
    "sums of a number": ("a = Mul (v, w) b = ReduceSum <keepdims = 0> (a, k0) d = ReduceSum (b) "
                         "f = ReduceMean <keepdims = 0> (d) h = Mul (x, f)", LAST),
    "Elu": ("h = Elu <alpha = 0.5> (p)", LAST),
    "Celu": ("h = Celu <alpha = 0.5> (p)", LAST),
    "Selu": ("h = Selu (p)", LAST),
    "HardSigmoid": ("h = HardSigmoid <alpha = 0.7> (p)", LAST),
    "ThresholdedRelu": ("h = ThresholdedRelu <alpha = 0.1> (p)", LAST),
    "LayerNormalization": ("h = LayerNormalization (p, w, v)", LAST),
    "LayerNormalization and its mean": ("a, b = LayerNormalization (p, v) h = Add (a, b)", LAST),
    "BatchNormalization": ("a = Mul (w, w) h = BatchNormalization (p, w, v, v, a)", LAST),
    "InstanceNormalization": ("a = Unsqueeze (r, one) b = Transpose <perm = [1, 2, 0]> (a) "
                              "n = InstanceNormalization (b, w, v) h = Mul (n, n)", SCALAR),
    "SoftmaxCrossEntropyLoss": ("k = Constant <value = int64[3] {{1, 0, 1}}> () "
                                "a = SoftmaxCrossEntropyLoss (p, k) h = Mul (a, w)", LAST),
    "SoftmaxCrossEntropyLoss and more": ("k = Constant <value = int64[3] {{1, 0, 1}}> () "
                                         "a, b = SoftmaxCrossEntropyLoss (p, k) h = Mul (a, b)", LAST),
    "Dropout": ("h = Dropout (p, low)", LAST),
    "Dropout out of training": ("k = Constant <value = bool {{0}}> () h, n = Dropout (p, low, k)", LAST),
}  # fmt: skip
#: Constants for some graphs only.
EXTRA = {
    "sums of a number": "k0 = Constant <value_ints = [0]> () ",
    "ScatterElements that adds": "z0 = Constant <value = int64[3,2] {{0, 0, 1, 1, 0, 1}}> () ",
}


def model_of(name, dtype="float"):
    body, last = GRAPHS[name]
    text = f"{HEAD} {{{{ {CONSTANTS} {EXTRA.get(name, '')} {body} {last} }}}}"
    return parse(text.format(dtype))


def wrt_of(model):
    read = {name for node in model.graph.node for name in node.input}
    return [name for name in "xwqv" if name in read]


def loss_of(model, feeds):
    return float(run(model, feeds)[0])


#: Graphs without float64 kernels in onnxruntime-training.
SINGLE = {"MatMul of a vector by three axes", "MatMul of two vectors", "ReduceL2",
          "SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLoss and more"}  # fmt: skip


@needs_training
@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in SINGLE])
def test_finite_differences(name):
    model = model_of(name, "double")
    feeds = {key: value + 0.5 for key, value in random_feed(model, random_state=1).items()}
    wrt = wrt_of(model)
    _, *found = run(gradient_of_loss(model, "loss", wrt, "ort"), feeds)
    for weight, gradient in zip(wrt, found, strict=True):
        assert gradient.dtype == np.float64 and gradient.shape == feeds[weight].shape
        direction = np.random.default_rng(0).normal(size=gradient.shape)
        up, down = (
            loss_of(model, {**feeds, weight: feeds[weight] + step * direction}) for step in (1e-6, -1e-6)
        )
        np.testing.assert_allclose((gradient * direction).sum(), (up - down) / 2e-6, rtol=1e-5, atol=1e-7)


@needs_training
@pytest.mark.parametrize("name", GRAPHS)
def test_equal_to_rules(name):
    model = model_of(name)
    feeds = {key: value + 0.5 for key, value in random_feed(model).items()}
    wrt = wrt_of(model)
    ort, rules = (run_onnxruntime(gradient_of_loss(model, "loss", wrt, backend), feeds)
                  for backend in ("ort", "rules"))  # fmt: skip
    for got, expected in zip(ort, rules, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert any(np.abs(gradient).max() > 0 for gradient in ort[1:])


@needs_training
@pytest.mark.parametrize("name", GRAPHS)
def test_onnx_derivative(name):
    model = make_initializers_of(model_of(name), ["w"])
    feeds = {key: value + 0.5 for key, value in random_feed(model_of(name)).items()}
    feeds = {key: value for key, value in feeds.items() if key in "xwqvc"}
    ort, rules = (onnx_derivative(model, ["w"], ["x"], backend=backend) for backend in ("ort", "rules"))
    feeds["loss_grad"] = np.array(0.5, np.float32)
    for got, expected in zip(run_onnxruntime(ort, feeds), run_onnxruntime(rules, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_every_rewrite_has_a_graph():
    used = {(node.domain, node.op_type) for name in GRAPHS for node in model_of(name).graph.node}
    used |= {(record.domain, record.op_type) for record in RECORDS}  # see test_ort_operators.py
    assert {key for key in REWRITES if key[0] == ""} <= used


def test_nodes_off_the_path_are_not_rewritten():
    model = model_of("ReduceMax")
    assert rewrite_for_ort(model, ["loss"], ["c"]) is model
    changed = rewrite_for_ort(model, ["loss"], ["x"])
    assert [value.name for value in changed.graph.input] == [value.name for value in model.graph.input]


@needs_training
def test_ties_share_the_gradient_of_a_maximum():
    model = parse("g (float[N] x) => (float loss) { loss = ReduceMax <keepdims = 0> (x) }")
    feeds = {"x": np.array([1.0, 3.0, 3.0, -np.inf], np.float32)}
    loss, gradient = run_onnxruntime(gradient_of_loss(model, "loss", ["x"], "ort"), feeds)
    assert loss == 3
    np.testing.assert_allclose(gradient, [0.0, 0.5, 0.5, 0.0])


@needs_training
@pytest.mark.parametrize(
    "body", ["Max (x, c)", "Min (c, x)", "Max (x, c, x)", "Clip (x, c)", "Abs (x)", "Relu (x)"]
)
def test_backends_agree_at_kinks(body):
    model = parse(f"""g (float[N] x) => (float loss) <float c = {{1}}> {{
        y = {body}  loss = ReduceSum <keepdims = 0> (y) }}""")
    feeds = {"x": np.array([-1.0, 0.0, 1.0, 2.0], np.float32)}
    ort, rules = (run_onnxruntime(gradient_of_loss(model, "loss", ["x"], backend), feeds)
                  for backend in ("ort", "rules"))  # fmt: skip
    np.testing.assert_allclose(ort[1], rules[1], rtol=1e-6)


@needs_training
@pytest.mark.parametrize("operator", ["Elu", "Celu", "Selu"])
def test_unused_branch_of_an_activation_may_overflow(operator):
    model = parse(
        f"g (float[N] x) => (float loss) {{ y = {operator} (x) loss = ReduceSum <keepdims = 0> (y) }}"
    )
    feeds = {"x": np.array([200.0, -200.0, 0.0, 1.0], np.float32)}
    ort, rules = (run_onnxruntime(gradient_of_loss(model, "loss", ["x"], backend), feeds)
                  for backend in ("ort", "rules"))  # fmt: skip
    assert np.isfinite(ort[1]).all()
    np.testing.assert_allclose(ort[1], rules[1], rtol=1e-6)


@needs_training
def test_powers_of_zero():
    model = parse("""g (float[N] x, float[N] w) => (float loss)
        { y = Pow (x, w) loss = ReduceSum <keepdims = 0> (y) }""")
    feeds = {"x": np.array([0, 0, 0, 2], np.float32), "w": np.array([0, 1, 2, 3], np.float32)}
    loss, dx, dw = run_onnxruntime(gradient_of_loss(model, "loss", ["x", "w"], "ort"), feeds)
    assert loss == 9
    np.testing.assert_allclose(dx, [0, 1, 0, 12], rtol=1e-6)
    np.testing.assert_allclose(dw, [0, 0, 0, 8 * np.log(2)], rtol=1e-6)


@needs_training
@pytest.mark.parametrize("body", ["Pow (x, w)", "Pow (x, c)", "Pow (x, k)"])
def test_powers_of_negative_numbers(body):
    model = parse(f"""g (float[5] x, float[5] w, float[5] c) => (float loss)
        <float[5] k = {{3, 2, 0, -1, -3}}> {{ y = {body} loss = ReduceSum <keepdims = 0> (y) }}""")
    exponents = np.array([3, 2, 0, -1, -3], np.float32)
    x = np.array([-2, -1.5, -2, -0.5, -1], np.float32)
    gradient = gradient_of_loss(model, "loss", ["x", "w"], "ort")
    loss, dx, dw = run_onnxruntime(gradient, {"x": x, "w": exponents, "c": exponents})
    np.testing.assert_allclose(loss, (x**exponents).sum(), rtol=1e-6)
    np.testing.assert_allclose(dx, exponents * x ** (exponents - 1), rtol=1e-6)
    # a power of a negative base has no derivative by its exponent
    assert np.isnan(dw).all() if body.endswith("w)") else not dw.any()
    x[0], x[1] = 0, 3
    loss, dx, _ = run_onnxruntime(gradient, {"x": x, "w": exponents * 0, "c": exponents * 0})
    assert not dx.any() or body.endswith("k)")


@needs_training
def test_roots_of_negative_numbers():
    model = parse("""g (float[N] x, float[N] w) => (float[N] y) { y = Pow (x, w) }""")
    onx = onnx_derivative(model, [], options=KEPT, backend="ort")
    feeds = {"x": np.array([-8, 8], np.float32), "w": np.array([1 / 3, 1 / 3], np.float32)}
    np.testing.assert_allclose(run_onnxruntime(onx, feeds)[0], [np.nan, 2], rtol=1e-6)


@needs_training
@pytest.mark.parametrize("flags", ["", "transA = 1", "transB = 1", "transA = 1, transB = 1, alpha = -0.5"])
@pytest.mark.parametrize("vector", [False, True])
def test_fused_matmul(flags, vector):
    right = "float[2] b" if vector else f"float{'[3,2]' if 'transB' in flags else '[2,3]'} b"
    left = "float[2,4] a" if "transA" in flags else "float[4,2] a"
    model = parse(
        f"""g ({left}, {right}) => (float loss)
        {{ y = com.microsoft.FusedMatMul <{flags}> (a, b) s = Mul (y, y)
           loss = ReduceSum <keepdims = 0> (s) }}""".replace("<>", "")
    )
    model.opset_import.add(domain="com.microsoft", version=1)
    feeds = random_feed(model)
    a = feeds["a"].T if "transA" in flags else feeds["a"]
    b = feeds["b"].T if "transB" in flags else feeds["b"]
    alpha = -0.5 if "alpha" in flags else 1.0
    y = alpha * a @ b
    loss, da, db = run(gradient_of_loss(model, "loss", ["a", "b"], "ort"), feeds)
    np.testing.assert_allclose(loss, (y * y).sum(), rtol=1e-5)
    expected = 2 * alpha * (np.outer(y, b) if vector else y @ b.T)
    np.testing.assert_allclose(da, expected.T if "transA" in flags else expected, rtol=1e-5)
    expected = 2 * alpha * a.T @ y
    np.testing.assert_allclose(db, expected.T if "transB" in flags else expected, rtol=1e-5)


@needs_training
@pytest.mark.parametrize("operator", ["Sqrt", "Cos", "Erf", "Tan", "Elu", "Pow", "Softsign", "Atan"])
def test_gradient_of_a_scalar_is_a_scalar(operator):
    second = "w" if operator == "Pow" else ""
    model = parse(f"""g (float[4] x, float w) => (float loss)
        {{ axis = Constant <value_ints = [0]> () s = ReduceSum <keepdims = 0> (x, axis) p = Mul (s, w)
           loss = {operator} (p{", " * bool(second)}{second}) }}""")
    feeds = {"x": np.array([0.1, 0.2, 0.3, 0.1], np.float32), "w": np.array(0.5, np.float32)}
    ort, rules = (run_onnxruntime(gradient_of_loss(model, "loss", ["x", "w"], backend), feeds)
                  for backend in ("ort", "rules"))  # fmt: skip
    assert [value.shape for value in ort] == [(), (4,), ()]
    for got, expected in zip(ort, rules, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
