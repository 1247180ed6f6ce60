"""What passes ask of a graph, and what is left of it."""

import numpy as np
import pytest
from onnx import parser

from ortlearn.training.fusions import Body

TEXT = """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
    g (float[N,2] x, double[3] d, int64 n, bool c) => (float[N,2] y, float[N,2] u, double[3] e)
    <float half = {0.5}, float[1,1] one = {1}, float[2] two = {1, 1}, float[2] unused = {3, 4}>
    { a = Mul (x, half) b = Add (a, a) s = ai.onnx.ml.Scaler (b) r = Relu (s) e = Neg (d) y = Mul (r, two)
      dead = Neg (r)
      u = If (c) <then_branch = t () => (float[N,2] p) { p = Neg (r) },
                  else_branch = f () => (float[N,2] q) { q = Abs (b) }> }"""


@pytest.fixture
def body():
    return Body(parser.parse_model(TEXT))


def test_producers_are_of_the_default_domain(body):
    assert body.producer("a").op_type == body.producer("a", "Mul").op_type == "Mul"
    assert body.producer("a", "Add") is None
    assert body.producer("s") is None and body.producer("x") is None and body.producer("half") is None


def test_readers(body):
    assert body.read_once("s") and body.read_once("half")
    assert not body.read_once("a")  # twice by one node
    assert not body.read_once("b")  # by a node and in a subgraph
    assert not body.read_once("y")  # by whoever runs the graph
    assert not body.read_once("unused")


def test_names_that_stay(body):
    assert body.keeps_name("y") and body.keeps_name("b") and body.keeps_name("r")
    assert not body.keeps_name("a") and not body.keeps_name("s")


def test_constants(body):
    assert body.is_constant("half", 0.5) and body.is_constant("one", 1)
    assert not body.is_constant("half", 1) and not body.is_constant("two", 1)
    assert not body.is_constant("x", 1) and body.value("x") is None
    name = body.constant(np.ones((3, 1)))
    assert body.shape(name) == (3, 1) and body.is_float(name)
    np.testing.assert_array_equal(body.value(name), np.ones((3, 1)))


def test_types(body):
    assert body.shape("x") is None  # its rows are not known
    assert (body.shape("d"), body.shape("half"), body.shape("one")) == ((3,), (), (1, 1))
    assert body.is_single("half") and body.is_single("one") and body.is_single("n")
    assert not body.is_single("two") and not body.is_single("x") and not body.is_single("nobody")
    assert body.is_float("x") and body.is_float("e")
    assert not body.is_float("n") and not body.is_float("c") and not body.is_float("nobody")


def test_what_nothing_needs_goes(body):
    body.replace(body.nodes)
    assert [node.op_type for node in body.nodes] == ["Mul", "Add", "Scaler", "Relu", "Neg", "Mul", "If"]
    model = body.to_model()
    assert [tensor.name for tensor in model.graph.initializer] == ["half", "two"]
    assert [value.name for value in model.graph.output] == ["y", "u", "e"]


def test_the_graph_given_is_not_changed():
    model = parser.parse_model(TEXT)
    before = model.SerializeToString(deterministic=True)
    body = Body(model)
    for node in body.nodes:
        node.input[:] = ["x"] * len(node.input)
    body.replace(body.nodes[:2])
    body.to_model()
    assert model.SerializeToString(deterministic=True) == before


def test_new_nodes_have_new_names():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2] fused_Neg_0) => (float[2] y) { fused_Neg_1 = Abs (fused_Neg_0) y = Neg (fused_Neg_1) }""")
    body = Body(model)
    node, name = body.make("Neg", "fused_Neg_1", like="y")
    assert name == "fused_Neg_2" and list(node.output) == [name] and body.shape(name) == (2,)
    node, name = body.make("Abs", "fused_Neg_1", like="y", output="y")
    assert name == "y" and list(node.output) == ["y"]
