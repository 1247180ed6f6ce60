"""Nodes that some versions of onnxruntime compute wrongly."""

import numpy as np
import pytest

from ortlearn.differentiation import onnx_derivative
from ortlearn.graphs.nodes import all_nodes
from ortlearn.graphs.portable_nodes import portable_nodes
from tests.differentiation.evaluation import run_onnxruntime
from tests.differentiation.models import parse

#: Value of a reduction of no axes, and its derivative.
REDUCTIONS = {
    "ReduceL1": (np.abs, np.sign),
    "ReduceL2": (np.abs, np.sign),
    "ReduceLogSum": (np.log, lambda x: 1 / x),
    "ReduceLogSumExp": (lambda x: x, np.ones_like),
    "ReduceMax": (lambda x: x, np.ones_like),
    "ReduceMean": (lambda x: x, np.ones_like),
    "ReduceMin": (lambda x: x, np.ones_like),
    "ReduceProd": (lambda x: x, np.ones_like),
    "ReduceSum": (lambda x: x, np.ones_like),
    "ReduceSumSquare": (np.square, lambda x: 2 * x),
}


@pytest.mark.parametrize("axes", ["initializer", "Constant", "omitted"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_no_axes(name, axes):
    constant = "<int64[0] a = {}>" if axes == "initializer" else ""
    node = "a = Constant <value_ints: ints = []> ()" if axes == "Constant" else ""
    read = "x" if axes == "omitted" else "x, a"
    model = parse(
        f"g (float[2,3] x) => (float[2,3] y) {constant} "
        f"{{ {node} y = {name} <noop_with_empty_axes = 1, keepdims = 0> ({read}) }}"
    )
    x = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], dtype=np.float32)
    x = np.abs(x) if name == "ReduceLogSum" else x
    value, slope = REDUCTIONS[name]
    np.testing.assert_allclose(run_onnxruntime(portable_nodes(model), {"x": x})[0], value(x), rtol=1e-6)
    (grad,) = run_onnxruntime(onnx_derivative(model), {"x": x, "y_grad": np.full_like(x, 2.0)})
    np.testing.assert_allclose(grad, 2 * slope(x), rtol=1e-6)


def test_nodes_of_branches():
    model = parse("""g (bool c, float[2,2] x) => (float[A,B] y) { y = If (c) <
        then_branch = a () => (float[A,B] p) { p = Transpose <perm = [0, 1]> (x) },
        else_branch = b () => (float[A,B] q) { q = Transpose <perm = [1, 0]> (x) }> }""")
    before = model.SerializeToString()
    changed = portable_nodes(model)
    assert model.SerializeToString() == before
    assert [node.op_type for node in all_nodes(changed.graph)].count("Transpose") == 1
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    for condition, expected in ((True, x), (False, x.T)):
        found = run_onnxruntime(changed, {"c": np.array(condition), "x": x})[0]
        np.testing.assert_array_equal(found, expected)


def test_other_models_are_returned_as_they_are():
    model = parse("g (float[N,2] x) => (float y) { t = Transpose (x) y = ReduceSum <keepdims = 0> (t) }")
    assert portable_nodes(model) is model
