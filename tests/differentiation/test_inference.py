"""Types of tensors that onnx does not infer."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, checker, parser

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.differentiation.types.dimensions import broadcast_shapes, reduced_axes, shape_template
from ortlearn.differentiation.types.inference import infer_types
from ortlearn.graphs import value_types
from tests.differentiation.evaluation import run_onnxruntime

TEXT = """<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1, "ai.onnx.ml": 3]>
    g (float[N,3] x, float[5,3] c) => (float y) {
    s = ai.onnx.ml.Scaler<offset=[1.0], scale=[0.5]>(x)
    d = com.microsoft.CDist<metric="sqeuclidean">(s, c)
    e = com.microsoft.Gelu(d)
    t = Transpose(e)
    l = Softmax(t)
    p = Mul(l, l)
    y = ReduceSum<keepdims=0>(p) }"""


def test_operators_of_other_domains():
    types = value_types(infer_types(parser.parse_model(TEXT)), infer=False)
    assert types["s"] == (TensorProto.FLOAT, ("N", 3))
    assert types["d"] == types["e"] == (TensorProto.FLOAT, ("N", 5))
    assert types["p"] == (TensorProto.FLOAT, (5, "N"))


def test_gradient_of_operators_of_other_domains():
    model = parser.parse_model(TEXT)
    onx = gradient_model(model, "y", ["c"])
    checker.check_model(onx)
    assert not {"Shape", "NonZero"} & {node.op_type for node in onx.graph.node}
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(4, 3)).astype(np.float32), "c": rng.normal(size=(5, 3)).astype(np.float32)}
    direction = rng.normal(size=(5, 3)).astype(np.float32)
    up, down = (run_onnxruntime(model, {**feeds, "c": feeds["c"] + h * direction})[0] for h in (1e-2, -1e-2))
    slope = (run_onnxruntime(onx, feeds)[1] * direction).sum()
    assert slope == pytest.approx((up - down) / 2e-2, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize(
    "shapes, expected",
    [
        ([("N", 3), (3,)], ("N", 3)),
        ([("N", 1), (1, 5)], ("N", 5)),
        ([("N", 1), ("M", 1)], (None, 1)),
        ([("N",), (4,)], (4,)),
        ([(), ()], ()),
        ([None, (3,)], None),
    ],
)
def test_broadcast_shapes(shapes, expected):
    assert broadcast_shapes(shapes) == expected


@pytest.mark.parametrize(
    "source, target, axes",
    [
        (("N", 3), ("N", 3), []),
        (("N", 3), (3,), [0]),
        (("N", 3), ("N", 1), [1]),
        (("N", 3), (1, 3), [0]),
        (("N", 3), (), [0, 1]),
        (("N", 3), ("M", 3), None),
        (("N", 3), (None, 3), None),
        ((None, 3), (None, 3), None),
        ((None, 3), (1, 3), [0]),
        ((1, 3), (1, 3), []),
        (None, (3,), None),
    ],
)
def test_reduced_axes(source, target, axes):
    assert reduced_axes(source, target) == axes


@pytest.mark.parametrize(
    "shape, template",
    [(("N", 3), [-1, 3]), ((2, 3), [2, 3]), (("N", "M"), None), ((0, 3), None), ((None, 3), [-1, 3])],
)
def test_shape_template(shape, template):
    assert shape_template(shape) == template


LOOP = """<ir_version: 8, opset_import: ["": 18]> g (double[N,3] x, int64 n, bool go) => (double y) {
    z = Loop (n, go, x) <body = b (int64 i, bool ci, double v) => (bool co, double next) { %s }>
    t = LayerNormalization(z, s) y = ReduceSum<keepdims=0>(t) }"""


def test_loop_that_keeps_a_shape():
    text = LOOP.replace("=> (double y) {", "=> (double y) <double[3] s = {1.0, 2.0, 3.0}> {")
    model = parser.parse_model(text % "co = Identity(ci) next = Tanh(v)")
    assert value_types(infer_types(model), infer=False)["z"].shape == ("N", 3)
    onx = gradient_model(model, "y", ["x"])
    assert "NonZero" not in {node.op_type for node in onx.graph.node}


def test_loop_that_changes_a_shape():
    text = LOOP.replace("=> (double y) {", "=> (double y) <double[3] s = {1.0, 2.0, 3.0}> {")
    model = parser.parse_model(text % "co = Identity(ci) next = Concat<axis=0>(v, v)")
    assert value_types(infer_types(model), infer=False)["z"].shape is None


def test_loop_with_branches_of_other_sizes():
    text = LOOP.replace("=> (double y) {", "=> (double y) <double[3] s = {1.0, 2.0, 3.0}> {")
    branches = """co = Identity(ci) next = If (ci) <
        then_branch = t () => (double[M,3] a) { a = Tanh(v) },
        else_branch = e () => (double[M,3] b) { b = Sigmoid(v) }>"""
    model = parser.parse_model(text % branches)
    assert value_types(infer_types(model), infer=False)["z"].shape == ("N", 3)
