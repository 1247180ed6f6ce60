"""Gradient models: modes, names, zero gradients, errors, and size of the graphs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker, helper, numpy_helper

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.differentiation.registry import gradient_rule, temporary_rules
from ortlearn.exceptions import GradientError
from ortlearn.graphs import append_nodes, graph_to_text, make_inputs_of
from ortlearn.graphs.builder import GraphBuilder
from tests.differentiation.evaluation import run, run_onnxruntime, run_reference
from tests.differentiation.models import chain, mlp, parse

SQUARES = """g (double[N,3] x, double[3] w) => (double y) {
    p = Mul(x, w) s = Mul(p, p) y = ReduceSum<keepdims=0>(s) }"""
X, W = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]]), np.array([0.5, -1.0, 2.0])


def names(values):
    return [value.name for value in values]


def ops(model):
    return [node.op_type for node in model.graph.node]


def test_loss_mode():
    onx = gradient_model(parse(SQUARES), "y", ["w", "x"])
    checker.check_model(onx, full_check=True)
    assert names(onx.graph.input) == ["x", "w"] and names(onx.graph.output) == ["y", "w_grad", "x_grad"]
    y, dw, dx = run(onx, {"x": X, "w": W})
    np.testing.assert_allclose(y, ((X * W) ** 2).sum())
    np.testing.assert_allclose(dw, (2 * X**2 * W).sum(axis=0))
    np.testing.assert_allclose(dx, 2 * X * W**2)


def test_gradient_inputs():
    model = parse("g (double[N,3] x) => (double[N,3] a, double[N] b, int64[2] s) "
                  "{ a = Exp(x) b = ReduceSum<keepdims=0>(a, axis) s = Shape(x) }".replace(
                      "{ a", "<int64[1] axis = {1}> { a"))  # fmt: skip
    onx = gradient_model(model, None, ["x"])
    assert names(onx.graph.input) == ["x", "a_grad", "b_grad"] and names(onx.graph.output) == ["x_grad"]
    da, db = np.ones_like(X), np.array([2.0, 3.0])
    (dx,) = run(onx, {"x": X, "a_grad": da, "b_grad": db})
    np.testing.assert_allclose(dx, np.exp(X) * (da + db[:, None]))
    one = gradient_model(model, "b", ["x"], grad_inputs=True)
    assert names(one.graph.input) == ["x", "b_grad"]
    kept = gradient_model(model, None, ["x"], keep_outputs=True)
    assert names(kept.graph.output) == ["a", "b", "s", "x_grad"]
    filled = gradient_model(model, None, ["x"], keep_outputs=True, fill_ones=True)
    assert names(filled.graph.input) == ["x"]
    np.testing.assert_allclose(run(filled, {"x": X})[3], 2 * np.exp(X))


@pytest.mark.parametrize("shape, axes", [("", ""), ("[1]", ""), ("[1,1]", "")])
def test_scalar_of_any_rank(shape, axes):
    model = parse(
        f"g (double[3] x) => (double{shape} y) <int64[{shape.count('1')}] s = "
        f"{{{','.join('1' * shape.count('1'))}}}> {{ t = ReduceSum<keepdims=0>(x) y = Reshape(t, s) }}"
    )
    _, dx = run(gradient_model(model, "y", ["x"]), {"x": W})
    np.testing.assert_array_equal(dx, np.ones(3))


def test_zero_gradient_of_independent_inputs():
    model = parse("g (double[N,3] x, double[N] z, float[2] v) => (double y) "
                  "{ f = Floor(x) y0 = ReduceSum<keepdims=0>(f) e = Exp(z) y = Identity(y0) }")  # fmt: skip
    onx = gradient_model(model, "y", ["x", "z", "v"])
    checker.check_model(onx, full_check=True)
    feeds = {"x": X, "z": np.ones(2), "v": np.ones(2, dtype=np.float32)}
    _, dx, dz, dv = run(onx, feeds)
    for grad, value in zip((dx, dz, dv), feeds.values(), strict=True):
        assert grad.dtype == value.dtype
        np.testing.assert_array_equal(grad, np.zeros_like(value))


def test_two_names_of_one_gradient():
    model = parse("g (double[3] a, double[3] b) => (double[3] y) { y = Add(a, b) }")
    onx = gradient_model(model, None, ["a", "b"])
    checker.check_model(onx, full_check=True)
    da, db = run(onx, {"a": W, "b": W, "y_grad": X[0]})
    np.testing.assert_array_equal(da, X[0])
    np.testing.assert_array_equal(db, X[0])


def test_output_differentiated_with_respect_to_itself():
    onx = gradient_model(parse(SQUARES), "y", ["y", "s"])
    _, dy, ds = run(onx, {"x": X, "w": W})
    assert dy == 1
    np.testing.assert_array_equal(ds, np.ones_like(X))


def test_names_do_not_clash_when_differentiated_twice():
    first = gradient_model(parse(SQUARES), "y", ["w"])
    op = GraphBuilder(dtype=np.float64)
    op.node("ReduceSum", "w_grad", keepdims=0, outputs=["total"])
    total = append_nodes(first, op, outputs=[helper.make_tensor_value_info("total", 11, [])])
    second = gradient_model(total, "total", ["w"])
    checker.check_model(second, full_check=True)
    assert names(second.graph.output) == ["total", "w_grad_grad"]
    np.testing.assert_allclose(run(second, {"x": X, "w": W})[1], (2 * X**2).sum(axis=0))


def test_weights_are_initializers_or_inputs():
    model, weights = mlp((3, 4, 1), np.float64)
    rng = np.random.default_rng(0)
    feeds = {"X": rng.normal(size=(5, 3)), "y": rng.normal(size=(5, 1))}
    inner = run(gradient_model(model, "loss", weights), feeds)
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    outer = run(gradient_model(make_inputs_of(model, weights), "loss", weights), {**feeds, **values})
    for left, right in zip(inner, outer, strict=True):
        np.testing.assert_allclose(left, right)


@pytest.mark.parametrize("batch", ["N", 15])
def test_number_of_nodes_of_an_mlp(batch):
    model, weights = mlp(batch=batch)
    onx = gradient_model(model, "loss", weights)
    checker.check_model(onx, full_check=True)
    backward = ops(onx)[len(model.graph.node) :]
    assert len(backward) <= 17
    # None of these is needed for known shapes.
    assert not {"Shape", "Identity", "Transpose", "Expand", "Reshape", "Where"} & set(backward)


def test_unused_nodes_are_removed():
    model = parse("g (double[3] x) => (double y, double[3] z) "
                  "{ e = Exp(x) y = ReduceSum<keepdims=0>(e) s = Sin(x) z = Cos(s) }")  # fmt: skip
    onx = gradient_model(model, "y", ["x"])
    assert "Cos" not in ops(onx) and "Sin" not in ops(onx)
    assert onx.graph.node[-1].output[0] == "x_grad" and len(ops(onx)) == 3


def test_unknown_operator_off_the_path():
    model = parse("g (double[3] x, double[3] c) => (double y) { u = NonZero(c) d = Det(m) "
                  "e = Mul(x, d) y = ReduceSum<keepdims=0>(e) }".replace(
                      "=> (double y) {", "=> (double y) <double[1,1] m = {2.0}> {"))  # fmt: skip
    onx = gradient_model(model, "y", ["x"])
    assert "Det" in ops(onx)


def test_frozen_initializers_may_change_later():
    # Values of weights are only used if they define an operator.
    model = parse("""g (double[3] x) => (double y) <double[1] w = {3.0}> {
        n = Neg(w) p = Mul(x, n) y = ReduceSum<keepdims=0>(p) }""")
    onx = gradient_model(model, "y", ["x"])
    for tensor in onx.graph.initializer:
        if tensor.name == "w":
            tensor.CopyFrom(numpy_helper.from_array(np.array([5.0]), "w"))
    np.testing.assert_array_equal(run_reference(onx, {"x": W})[1], -5 * np.ones(3))


@pytest.mark.parametrize("n_samples", [0, 1, 7])
def test_any_batch_size(n_samples):
    model, weights = mlp((3, 4, 2))
    onx = gradient_model(model, "loss", weights)
    feeds = {"X": np.ones((n_samples, 3), np.float32), "y": np.ones((n_samples, 2), np.float32)}
    for name, grad in zip(weights, run_reference(onx, feeds)[1:], strict=True):
        shape = next(t.dims for t in model.graph.initializer if t.name == name)
        assert grad.shape == tuple(shape)
        assert n_samples or not grad.any()


def test_unknown_operator():
    model = parse("g (float[3] x) => (float y) { d = mine.Twist<angle=1>(x) y = ReduceSum<keepdims=0>(d) }")
    model.opset_import.append(helper.make_opsetid("mine", 1))
    model.graph.node[0].name = "twist_1"
    with pytest.raises(GradientError) as caught:
        gradient_model(model, "y", ["x"], origin={"twist_1": "step 'scaler' (StandardScaler)"})
    for part in (
        "'Twist'",
        "'mine'",
        "'twist_1'",
        "StandardScaler",
        "@gradient_rule(\"Twist\", domain='mine')",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "result, match",
    [
        (lambda op, node, grad: op.Neg(grad), "single gradient, but input 1"),
        (lambda op, node, grad: (grad,), "each of the 2 inputs"),
        (lambda op, node, grad: (grad, 3.0), "each of the 2 inputs"),
    ],
)
def test_wrong_number_of_gradients(result, match):
    with temporary_rules():
        gradient_rule("Add", overwrite=True)(result)
        model = parse("g (float[3] a, float[3] b) => (float[3] y) { y = Add(a, b) }")
        with pytest.raises(GradientError, match=match):
            gradient_model(model, None, ["a", "b"])


@pytest.mark.parametrize(
    "y, wrt, match",
    [
        ("p", ["x"], "only scalars have"),
        ("nothing", ["x"], "'nothing' is not a tensor"),
        ("y", ["nothing"], "'nothing' is not a tensor"),
        ("y", ["i"], "int64"),
    ],
)
def test_wrong_names(y, wrt, match):
    model = parse(SQUARES.replace("double[3] w)", "double[3] w, int64[2] i)", 1))
    with pytest.raises(GradientError, match=match):
        gradient_model(model, y, wrt)


def test_old_opset():
    with pytest.raises(GradientError, match="convert_version"):
        gradient_model(parse("g (float[3] x) => (float[3] y) { y = Exp(x) }", opset=12), None, ["x"])


def test_errors_of_unsupported_forms():
    text = """g (float[2,3,4] x) => (float[2,3,2] y) {
        y = LpPool<kernel_shape=[2], strides=[2], ceil_mode=1>(x) }"""
    with pytest.raises(GradientError, match="LpPool.*ceil_mode=1"):
        gradient_model(parse(text), None, ["x"])


def test_unknown_rank_is_named():
    model = parse("g (float[N,3] x, int64[K] s) => (float[M] y) { a = Reshape(x, s) t = Transpose(a) "
                  "l = LayerNormalization(t, w) y = Reshape(l, f) }".replace(
                      "{ a", "<float[1] w = {1.0}, int64[1] f = {-1}> { a"))  # fmt: skip
    with pytest.raises(GradientError, match="rank of 't' is unknown"):
        gradient_model(model, None, ["x"])


def test_dropout_in_training_uses_its_mask():
    model = parse("g (float[50] x) => (float[50] y) <float r = {0.4}, bool t = {1}> "
                  "{ y = Dropout<seed=1>(x, r, t) }")  # fmt: skip
    onx = gradient_model(model, None, ["x"], keep_outputs=True)
    x = np.arange(1, 51, dtype=np.float32)
    y, dx = run_onnxruntime(onx, {"x": x, "y_grad": np.ones(50, np.float32)})
    assert 0 < (y == 0).sum() < 50
    np.testing.assert_allclose(dx, y / x, rtol=1e-6)


def test_float32_and_float64_in_one_graph():
    model = parse(
        "g (float[3] x) => (double y) { d = Cast<to=11>(x) e = Exp(d) y = ReduceSum<keepdims=0>(e) }"
    )
    dx = run(gradient_model(model, "y", ["x"]), {"x": W.astype(np.float32)})[1]
    assert dx.dtype == np.float32
    np.testing.assert_allclose(dx, np.exp(W), rtol=1e-6)


def test_model_is_not_changed():
    model, weights = mlp((3, 4, 1))
    before = model.SerializeToString()
    gradient_model(model, "loss", weights)
    assert model.SerializeToString() == before


def test_text_is_stable():
    onx = gradient_model(parse(SQUARES), "y", ["w"])
    assert graph_to_text(onx) == graph_to_text(gradient_model(parse(SQUARES), "y", ["w"]))


@pytest.mark.slow
def test_work_grows_linearly_with_the_number_of_nodes():
    def calls(length):
        count = 0

        def tanh(op, node, grad):
            nonlocal count
            count += 1
            return op.Mul(grad, op.Sub(1.0, op.square(node.O(0))))

        with temporary_rules():
            gradient_rule("Tanh", overwrite=True)(tanh)
            onx = gradient_model(chain(length), "y", ["w"])
        return count, len(onx.graph.node)

    assert calls(100)[0] == 50 and calls(200)[0] == 100
    small, large = calls(100)[1], calls(1000)[1]
    assert large < 10.5 * small
