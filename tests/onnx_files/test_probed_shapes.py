"""Unknown ranks are found by running the graph, and branches decided by shapes are folded."""

import numpy as np
import pytest
from onnx import parser

from ortlearn import OrtGradientOptimizer, onnx_files
from ortlearn.differentiation import onnx_derivative
from ortlearn.graphs import value_types
from ortlearn.onnx_files.probed_shapes import with_probed_shapes
from ortlearn.onnx_files.simplify import with_chosen_branches
from ortlearn.problem.model_sources import _GraphRunner
from ortlearn.trainable.conversion import to_trainable

X = np.random.RandomState(0).normal(size=(30, 4)).astype(np.float32)
y = X @ np.array([[1], [2], [0], [-1]], np.float32)
HEAD = '<ir_version: 8, opset_import: ["": 18]> g (float[N,4] x) => (float[N,K] y)'
#: As torch exports squeeze(1) of a tensor whose second axis has an unknown length.
SQUEEZE = f"""{HEAD}
    <int64[1] one = {{1}}, int64 first = {{1}}, int64 unit = {{1}}, float[4,1] w = {{1, 1, 1, 1}}>
    {{ u = Unsqueeze (x, one) s = Shape (u) d = Gather (s, first) c = Equal (d, unit)
      q = If (c) <then_branch = yes () => (float[] a) {{ a = Squeeze (u, one) }},
                  else_branch = no () => (float[] b) {{ b = Identity (u) }}>
      y = MatMul (q, w) }}"""
#: A shape that shape inference does not find: a product of lengths by ReduceProd.
PRODUCT = f"""{HEAD} <float[4,1] w = {{1, 1, 1, 1}}, int64[2] halves = {{2, 2}}, int64[1] one_axis = {{1}},
      int64[1] rest = {{-1}}>
    {{ a = Cast <to = 1> (halves) r = ReduceProd (a) i = Cast <to = 7> (r) k = Expand (i, one_axis)
      m = Concat <axis = 0> (rest, k) z = Reshape (x, m) y = MatMul (z, w) }}"""


def rank(model, name):
    known = value_types(model).get(name)
    return None if known is None or known.shape is None else len(known.shape)


def test_branch_decided_by_shapes_is_folded(run_onnx):
    model = parser.parse_model(SQUEEZE)
    assert rank(model, "q") is None
    probed = with_probed_shapes(model, _GraphRunner())
    assert "If" not in {node.op_type for node in probed.graph.node} and rank(probed, "q") == 2
    np.testing.assert_array_equal(run_onnx(probed, X)[0], run_onnx(model, X)[0])


def test_branches_decided_by_the_number_of_samples_are_unchanged(run_onnx):
    model = parser.parse_model(
        f"""{HEAD} <int64 first = {{0}}, int64 unit = {{1}}>
        {{ s = Shape (x) d = Gather (s, first) c = Equal (d, unit)
          y = If (c) <then_branch = yes () => (float[N,4] a) {{ a = Neg (x) }},
                      else_branch = no () => (float[N,4] b) {{ b = Exp (x) }}> }}"""
    )
    assert with_probed_shapes(model, _GraphRunner()) == model


def test_branches_decided_by_values_are_unchanged():
    model = parser.parse_model(
        f"""{HEAD} <float zero = {{0}}>
        {{ s = ReduceMax <keepdims = 0> (x) c = Greater (s, zero)
          y = If (c) <then_branch = yes () => (float[N,4] a) {{ a = Neg (x) }},
                      else_branch = no () => (float[N,4] b) {{ b = Exp (x) }}> }}"""
    )
    assert with_probed_shapes(model, _GraphRunner()) == model


@pytest.mark.parametrize("text", [SQUEEZE, PRODUCT])
def test_training_with_unknown_ranks(run_onnx, text):
    model = parser.parse_model(text)
    options = {"max_iter": 200, "learning_rate": 0.05, "random_state": 0}
    trained = OrtGradientOptimizer(model, warm_start=True, **options).fit(X, y)
    np.testing.assert_allclose(trained.trained_coef_["w"], [[1], [2], [0], [-1]], atol=0.05)
    result = trained.get_trained_onnx()
    assert [n.op_type for n in result.graph.node] == [n.op_type for n in model.graph.node]
    np.testing.assert_allclose(run_onnx(result, X)[0], trained.predict(X), rtol=1e-4, atol=1e-5)


def test_ranks_of_computed_shapes_are_probed(run_onnx):
    model = parser.parse_model(
        f"""{HEAD} <int64[1] one = {{1}}, int64[1] rest = {{-1}}, int64[1] four = {{4}},
          float[4,1] w = {{1, 1, 1, 1}}>
        {{ f = Cast <to = 1> (one) e = Exp (f) i = Cast <to = 7> (e) two = Sub (i, one)
          k = Expand (four, two) m = Concat <axis = 0> (rest, k) q = Reshape (x, m) y = MatMul (q, w) }}"""
    )
    assert rank(model, "q") is None
    found = with_probed_shapes(model, _GraphRunner())
    assert value_types(found)["q"].shape[1:] == (4,)
    np.testing.assert_array_equal(run_onnx(found, X)[0], run_onnx(model, X)[0])


def test_ranks_that_differ_are_unknown():
    model = parser.parse_model(f"""{HEAD} {{ s = Squeeze (x) y = Neg (s) }}""")
    assert with_probed_shapes(model, _GraphRunner()) == model  # a single sample has one dimension less


def test_graphs_that_fail_on_random_samples_are_unchanged():
    model = parser.parse_model(
        f"""{HEAD} <int64[2] k = {{7, -1}}> {{ s = Squeeze (x) y = Reshape (s, k) }}"""
    )
    assert with_probed_shapes(model, _GraphRunner()) == model


@pytest.mark.parametrize("condition, sign", [(1, -1), (0, 1)])
def test_constant_branches_are_folded(run_onnx, condition, sign):
    model = parser.parse_model(
        f"""{HEAD} <bool c = {{{condition}}}, float[4,1] w = {{1, 1, 1, 1}}>
        {{ y = If (c) <
             then_branch = yes () => (float[N,1] a)
               {{ z = MatMul (x, w) d = Constant <value = bool {{1}}> ()
                 a = If (d) <then_branch = in () => (float[N,1] e) {{ e = Neg (z) }},
                             else_branch = out () => (float[N,1] f) {{ f = Exp (z) }}> }},
             else_branch = no () => (float[N,1] b) {{ z = MatMul (x, w) b = Identity (z) }}> }}"""
    )
    folded = with_chosen_branches(model)
    assert "If" not in {node.op_type for node in folded.graph.node}
    np.testing.assert_allclose(run_onnx(folded, X)[0], sign * X.sum(1, keepdims=True), rtol=1e-5)
    assert to_trainable(model).trained == ["I1_w"]


def test_input_without_a_shape():
    model = parser.parse_model(f"{HEAD} <float[4,1] w = {{0, 0, 0, 0}}> {{ y = MatMul (x, w) }}")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert OrtGradientOptimizer(model, learning_rate=0.1).fit(X, y).score(X, y) > 0.99
    gradient = onnx_derivative(model, feeds={"x": X})  # the remedies that the error names
    assert rank(gradient, "w_grad") == 2
    opened = onnx_files.open(model, {"x": X})
    assert OrtGradientOptimizer(opened, learning_rate=0.1).fit(X, y).score(X, y) > 0.99
