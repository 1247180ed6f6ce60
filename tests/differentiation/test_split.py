"""Forward and backward graphs as two models."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.differentiation.split import split_gradient_model
from ortlearn.graphs import extract_model, make_inputs_of
from tests.differentiation.evaluation import run, run_onnxruntime
from tests.differentiation.models import mlp, parse


def names(values):
    return [value.name for value in values]


def run_both(models, feeds, grads):
    forward, backward, saved = models
    kept = dict(zip(names(forward.graph.output), run(forward, feeds), strict=True))
    given = {**feeds, **kept, **grads}
    return run(backward, {name: given[name] for name in names(backward.graph.input)})


def test_mlp_saves_outputs_of_activations():
    model, weights = mlp((5, 4, 3, 1), np.float64)
    model = make_inputs_of(extract_model(model, ["sum2"]), weights)
    models = split_gradient_model(model, weights)
    checker.check_model(models.forward, full_check=True)
    checker.check_model(models.backward, full_check=True)
    assert models.saved == ["hidden0", "hidden1"]
    assert names(models.forward.graph.output) == ["sum2", "hidden0", "hidden1"]
    assert names(models.backward.graph.input) == ["X", "W1", "W2", "hidden0", "hidden1", "sum2_grad"]
    rng = np.random.default_rng(0)
    feeds = {
        v.name: rng.normal(size=[d.dim_value or 6 for d in v.type.tensor_type.shape.dim])
        for v in model.graph.input
    }
    grads = {"sum2_grad": rng.normal(size=(6, 1))}
    whole = run(gradient_model(model, None, weights), {**feeds, **grads})
    for left, right in zip(run_both(models, feeds, grads), whole, strict=True):
        np.testing.assert_allclose(left, right)


@pytest.mark.parametrize(
    "text, saved",
    [
        ("g (double[N,3] x, double[3] w) => (double[N,3] y) { p = Mul(x, w) y = Add(p, w) }", []),
        ("g (double[N,3] x, double[3] w) => (double[N,3] y) { p = Mul(x, w) y = Tanh(p) }", ["y"]),
        (
            "g (double[N,3] x, double[3] w) => (double[N,3] y) { p = Mul(x, w) q = Sin(p) y = Mul(q, x) }",
            ["q"],
        ),
        (
            "g (double[N,3] x, double[3] w) => (double[N,3] y) { e = Exp(x) p = Mul(e, w) y = Relu(p) }",
            ["e", "y"],
        ),
    ],
)
def test_saved_tensors_are_few(text, saved):
    model = parse(text)
    models = split_gradient_model(model, ["x", "w"])
    assert models.saved == saved
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=3)}
    grads = {"y_grad": rng.normal(size=(4, 3))}
    whole = run(gradient_model(model, None, ["x", "w"]), {**feeds, **grads})
    for left, right in zip(run_both(models, feeds, grads), whole, strict=True):
        np.testing.assert_allclose(left, right)


def test_history_of_a_loop_is_saved():
    model = parse("""g (double[3] x, double[3] w, int64 n, bool go) => (double[3] z) {
        z = Loop (n, go, x) <body = b (int64 i, bool ci, double[3] v) => (bool co, double[3] next) {
            co = Identity(ci) a = Mul(v, w) next = Tanh(a) }> }""")
    models = split_gradient_model(model, ["x", "w"])
    feeds = {"x": np.ones(3), "w": np.full(3, 0.5), "n": np.array(3), "go": np.array(True)}
    grads = {"z_grad": np.ones(3)}
    whole = run_onnxruntime(gradient_model(model, None, ["x", "w"]), {**feeds, **grads})
    for left, right in zip(run_both(models, feeds, grads), whole, strict=True):
        np.testing.assert_allclose(left, right)


def test_saved_tensors_have_types():
    """Saved indices have types, which only their producers determine."""
    model = parse("""g (float[N,2] x, float[2,1] coef) => (float[N,1] score)
        <int64 second = {1}, int64[1] column = {-1}>
        { p = MatMul (x, coef) m = Neg (p) c = Concat <axis = 1> (m, p) i = Reshape (second, column)
          score = Gather <axis = -1> (c, i) }""")
    forward, backward, saved = split_gradient_model(model, ["coef"])
    assert saved and all(value.type.tensor_type.elem_type for value in backward.graph.input)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(6, 2)).astype(np.float32), "coef": np.ones((2, 1), np.float32)}
    grad = rng.normal(size=(6, 1)).astype(np.float32)
    kept = dict(zip(names(forward.graph.output), run_onnxruntime(forward, feeds), strict=True))
    given = {**feeds, **kept, "score_grad": grad}
    (got,) = run_onnxruntime(backward, {name: given[name] for name in names(backward.graph.input)})
    np.testing.assert_allclose(got, feeds["x"].T @ grad, rtol=1e-4, atol=1e-5)
