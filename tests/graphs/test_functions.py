"""Functions of a model, including functions with the name of an operator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, parser

from ortlearn import OrtGradientOptimizer
from ortlearn.differentiation import gradient_of_loss, onnx_derivative
from ortlearn.graphs import inline_functions, make_inputs_of
from ortlearn.losses import add_loss_output
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.training.steps.forward_backward import OrtGradientForwardBackward

X = np.array([[1, -2], [3, -1], [-2, 5]], np.float32)
TEXT = """<ir_version: 8, opset_import: ["": {opset}, "ai.onnx.ml": 3, "own": 1]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {{1, 2}}> {{ {body} }}"""
#: Graphs with the names of the operators that functions replace.
GRAPHS = {
    "an activation": ("h = Relu (x) y = MatMul (h, w)", ["Relu"]),
    "the last node": ("h = MatMul (x, w) y = Neg (h)", ["Neg"]),
    "a classical operator": ('h = ai.onnx.ml.Normalizer <norm = "L1"> (x) y = MatMul (h, w)', ["Normalizer"]),
    "inside of another function": ("h = own.twice (x) y = MatMul (h, w)", ["Add"]),
    "an operator that others are written with": ("h = Softplus (x) y = MatMul (h, w)", ["Exp", "Log", "Add"]),
}


def model_of(name, opset=18):
    """Return a model whose functions compute -7 x."""
    body, shadowed = GRAPHS[name]
    model = parser.parse_model(TEXT.format(opset=opset, body=body))
    opsets = [helper.make_opsetid("", opset)]
    for operator in shadowed:
        domain = "ai.onnx.ml" if operator == "Normalizer" else ""
        inputs = ["a", "b"] if operator == "Add" else ["a"]
        seven = helper.make_node("Constant", [], ["s"], value_float=-7.0)
        node = helper.make_node("Mul", ["a", "s"], ["r"])
        attributes = ["norm"] if operator == "Normalizer" else []
        model.functions.append(
            helper.make_function(domain, operator, inputs, ["r"], [seven, node], opsets, attributes)
        )
    twice = helper.make_node("Add", ["a", "a"], ["r"])
    model.functions.append(helper.make_function("own", "twice", ["a"], ["r"], [twice], opsets))
    return model


@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("name", GRAPHS)
def test_equal_to_onnxruntime(run_onnx, name, opset):
    model = model_of(name, opset)
    expected = run_onnx(model, X)[0]
    assert len(inline_functions(model).functions) == 0 < len(model.functions)
    for inlined in (inline_functions(model), load_onnx(model)):
        np.testing.assert_allclose(run_onnx(inlined, X)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_training_and_losses(run_onnx, name):
    model = model_of(name)
    expected = run_onnx(model, X)[0]
    options = {"max_iter": 1, "learning_rate": 1e-12, "warm_start": True}
    trainer = OrtGradientOptimizer(model, **options).fit(X, X[:, 0])
    np.testing.assert_allclose(np.reshape(trainer.predict(X), (-1, 1)), expected, rtol=1e-5)
    function = OrtGradientForwardBackward(model, ["w"], gradient="rules").new_instance()
    w = np.array([[1], [2]], np.float32)
    found = function.forward([X, w], training=True)[0].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    zeros = np.zeros((3, 1), np.float32)
    loss, *_ = run_onnx(add_loss_output(model), X, zeros)
    np.testing.assert_allclose(loss, (expected**2).sum(), rtol=1e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_gradients(run_onnx, name):
    model = model_of(name)
    step = np.array([[1e-2], [0]], np.float32)
    seed = np.ones((3, 1), np.float32)
    gradient = onnx_derivative(model, ["w"], [])
    w = np.array([[1], [2]], np.float32)
    found = run_onnx(gradient, x=X, w=w, y_grad=seed)[0]
    # exact, since the scores are linear in the weights
    moved = model_of(name)
    moved.graph.initializer[0].CopyFrom(helper.make_tensor("w", 1, [2, 1], (w + step).ravel().tolist()))
    slope = (run_onnx(moved, X)[0].sum() - run_onnx(model, X)[0].sum()) / 1e-2
    np.testing.assert_allclose(found[0, 0], slope, rtol=2e-3)
    loss = gradient_of_loss(make_inputs_of(add_loss_output(model), ["w"]), "loss", ["w"])
    assert not loss.functions


def test_unknown_standard_operator(run_onnx):
    model = parser.parse_model(TEXT.format(opset=18, body="h = Gelu (x) y = MatMul (h, w)"))
    node = helper.make_node("Neg", ["a"], ["r"])
    opsets = [helper.make_opsetid("", 18)]
    model.functions.append(helper.make_function("", "Gelu", ["a"], ["r"], [node], opsets))
    np.testing.assert_allclose(run_onnx(inline_functions(model), X)[0], -X @ [[1], [2]], rtol=1e-6)
