"""Rules registered with the C++ builder: equal gradients, and errors for nodes that do not fit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

from ortlearn.differentiation import gradient_of_loss, gradient_rule, onnx_derivative
from ortlearn.differentiation.ort_definitions import fixed_nodes
from ortlearn.differentiation.random_feed import random_feed
from ortlearn.differentiation.registry import temporary_rules
from ortlearn.exceptions import GradientError
from tests.differentiation.evaluation import run, run_onnxruntime
from tests.differentiation.models import parse

needs_training = pytest.mark.needs_training


def model_of(operator, dtype="float", opset=18):
    """Return a model whose scalar loss goes through an operator."""
    return parse(
        f"g ({dtype}[4,3] x, {dtype}[3] w) => ({dtype} loss) "
        f"{{ p = Mul (x, w) [my_node] y = {operator} (p) s = Mul (y, x) "
        "loss = ReduceSum <keepdims = 0> (s) }",
        opset,
    )


@needs_training
@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("operator", ["Softplus", "Softsign", "Mish", "Tan", "Atan", "Cosh"])
def test_equal_to_rules(operator, dtype):
    model = model_of(operator, dtype)
    feeds = random_feed(model, random_state=3)
    feeds = {name: 4 * value - 2 for name, value in feeds.items()}
    rules = gradient_of_loss(model, "loss", ["x", "w"], "rules")
    ort = gradient_of_loss(model, "loss", ["x", "w"], "ort")
    for got, expected in zip(run(ort, feeds), run(rules, feeds), strict=True):
        assert got.dtype == expected.dtype == feeds["x"].dtype
        # onnxruntime-training starts from a float32 loss, whatever the type of the graph
        np.testing.assert_allclose(got, expected, rtol=1e-4 if dtype == "float" else 1e-12, atol=1e-5)


@needs_training
def test_onnx_derivative():
    model = parse(
        "g (float[N,3] x) => (float[N,3] y) <float[3] w = {1, -2, 3}> { p = Mul (x, w) y = Mish (p) }"
    )
    feeds = {"x": np.ones((2, 3), np.float32), "w": np.array([1, -2, 3], np.float32)}
    feeds["y_grad"] = np.full((2, 3), 0.5, np.float32)
    ort, rules = (run_onnxruntime(onnx_derivative(model, backend=b), feeds) for b in ("ort", "rules"))
    for got, expected in zip(ort, rules, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@needs_training
def test_rule_defined_in_a_notebook():
    # no other test uses Shrink with onnxruntime-training, because definitions cannot be removed
    model = model_of("Shrink <bias = 0.25, lambd = 0.25>")
    feeds = random_feed(model)
    with pytest.raises(GradientError, match="Shrink .*'my_node'.* has no gradient in onnxruntime-training"):
        gradient_of_loss(model, "loss", ["w"], "ort")
    with temporary_rules():

        @gradient_rule("Shrink", overwrite=True)
        def shrink(op, node, grad):  # a different gradient, to identify the rule
            return op.Mul(grad, op.Sub(2.0, node.O(0)))

        found = run_onnxruntime(gradient_of_loss(model, "loss", ["w"], "ort"), feeds)
        expected = run_onnxruntime(gradient_of_loss(model, "loss", ["w"], "rules"), feeds)
    x, product = feeds["x"], feeds["x"] * feeds["w"]
    shrunk = np.where(product > 0.25, product - 0.25, 0)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    np.testing.assert_allclose(found[1], (x * x * (2 - shrunk)).sum(axis=0), rtol=1e-4)
    # the rule was removed, its definition remains: an error instead of its gradient
    with pytest.raises(GradientError, match="one gradient of Shrink per process.*'my_node'"):
        gradient_of_loss(model, "loss", ["w"], "ort")
    gradient_of_loss(model, "loss", ["w"])


@needs_training
@pytest.mark.parametrize("operator", ["CumSum", "LpNormalization <p = 1>"])
def test_rule_with_attributes_is_not_registered(operator):
    model = model_of(operator)
    if operator == "CumSum":
        model.graph.node[1].input.append("axis")
        model.graph.node.insert(0, helper.make_node("Constant", [], ["axis"], value_int=1))
    name = operator.partition(" ")[0]
    gradient_of_loss(model, "loss", ["w"], "rules")
    with pytest.raises(GradientError, match=f"Operator {name} .*'my_node'.* has no gradient in onnxruntime"):
        gradient_of_loss(model, "loss", ["w"], "ort")


def test_fixed_nodes():
    nodes, constants = fixed_nodes("Softsign", "", 1, 1, 18)
    read = {name for node in nodes for name in node.input}
    written = [name for node in nodes for name in node.output]
    assert read <= {"I(0)", "O(0)", "GO(0)", *written, *(tensor.name for tensor in constants)}
    assert written[-1] == "GI(0)"
    for operator in ("Elu", "Floor", "Nothing", "ReduceSum", "Concat"):
        assert fixed_nodes(operator, "", 1, 1, 18) is None


def test_rule_with_missing_gradients_is_not_fixed():
    with temporary_rules():

        @gradient_rule("Two", domain="mine")
        def two(op, node, grad):
            return [grad]

        assert fixed_nodes("Two", "mine", 2, 1, 18) is None
        nodes, _ = fixed_nodes("Two", "mine", 1, 1, 18)
        assert [node.op_type for node in nodes] == ["Identity"]


REMAINDERS = """
from onnx import helper, parser
from ortlearn.differentiation import gradient_of_loss
from ortlearn.differentiation.ort_definitions import check_registered
from ortlearn.exceptions import GradientError

def model(operands):
    return parser.parse_model(f'''<ir_version: 8, opset_import: ["": 18]>
        g (float[3] x, float[3] z) => (float loss)
        {{ [my_node] y = Mod <fmod = 1> ({operands}) s = Mul (y, y) loss = ReduceSum <keepdims = 0> (s) }}''')

gradient_of_loss(model("x, z"), "loss", ["x"], "ort")
try:
    gradient_of_loss(model("x, z"), "loss", ["z"], "ort")
except GradientError as error:
    print(error)
print(len(gradient_of_loss(model("x, z"), "loss", ["z"]).graph.node) > 0)
other = model("x, z")
other.graph.node[1].input[:] = ["x", "z"]  # the remainder is off the path
gradient_of_loss(other, "loss", ["z"], "ort")
try:
    check_registered([helper.make_node("Mod", ["x", "z", "x"], ["y"], name="my_node")], 18, {"x"})
except GradientError as error:
    print(error)
"""


@needs_training
def test_error_of_definitions_that_do_not_fit():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", REMAINDERS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first_input, auto, message = done.stdout.splitlines()
    assert "only if the gradient of the first input is needed" in first_input and "my_node" in first_input
    assert auto == "True"
    assert "one gradient of Mod per process" in message and "node 'my_node' with 3 inputs" in message
    assert "gradient='rules'" in message
