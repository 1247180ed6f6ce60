"""What passes ask of a graph, and what is left of it."""

import numpy as np
import pytest
from onnx import parser

from ortlearn.training.fusions import EditableGraph

TEXT = """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
    g (float[N,2] x, double[3] d, int64 n, bool c) => (float[N,2] y, float[N,2] u, double[3] e)
    <float half = {0.5}, float[1,1] one = {1}, float[2] two = {1, 1}, float[2] unused = {3, 4}>
    { a = Mul (x, half) b = Add (a, a) s = ai.onnx.ml.Scaler (b) r = Relu (s) e = Neg (d) y = Mul (r, two)
      dead = Neg (r)
      u = If (c) <then_branch = t () => (float[N,2] p) { p = Neg (r) },
                  else_branch = f () => (float[N,2] q) { q = Abs (b) }> }"""


@pytest.fixture
def graph():
    return EditableGraph(parser.parse_model(TEXT))


def test_producers_are_of_the_default_domain(graph):
    assert graph.producer("a").op_type == graph.producer("a", "Mul").op_type == "Mul"
    assert graph.producer("a", "Add") is None
    assert graph.producer("s") is None and graph.producer("x") is None and graph.producer("half") is None


def test_readers(graph):
    assert graph.read_once("s") and graph.read_once("half")
    assert not graph.read_once("a")  # twice by one node
    assert not graph.read_once("b")  # by a node and in a subgraph
    assert not graph.read_once("y")  # by whoever runs the graph
    assert not graph.read_once("unused")


def test_names_that_stay(graph):
    assert graph.keeps_name("y") and graph.keeps_name("b") and graph.keeps_name("r")
    assert not graph.keeps_name("a") and not graph.keeps_name("s")


def test_constants(graph):
    assert graph.is_constant("half", 0.5) and graph.is_constant("one", 1)
    assert not graph.is_constant("half", 1) and not graph.is_constant("two", 1)
    assert not graph.is_constant("x", 1) and graph.value("x") is None
    name = graph.constant(np.ones((3, 1)))
    assert graph.shape(name) == (3, 1) and graph.is_float(name)
    np.testing.assert_array_equal(graph.value(name), np.ones((3, 1)))


def test_types(graph):
    assert graph.shape("x") is None  # its rows are not known
    assert (graph.shape("d"), graph.shape("half"), graph.shape("one")) == ((3,), (), (1, 1))
    assert graph.is_single("half") and graph.is_single("one") and graph.is_single("n")
    assert not graph.is_single("two") and not graph.is_single("x") and not graph.is_single("nobody")
    assert graph.is_float("x") and graph.is_float("e")
    assert not graph.is_float("n") and not graph.is_float("c") and not graph.is_float("nobody")


def test_what_nothing_needs_goes(graph):
    graph.replace(graph.nodes)
    assert [node.op_type for node in graph.nodes] == ["Mul", "Add", "Scaler", "Relu", "Neg", "Mul", "If"]
    model = graph.to_model()
    assert [tensor.name for tensor in model.graph.initializer] == ["half", "two"]
    assert [value.name for value in model.graph.output] == ["y", "u", "e"]


def test_the_graph_given_is_not_changed():
    model = parser.parse_model(TEXT)
    before = model.SerializeToString(deterministic=True)
    graph = EditableGraph(model)
    for node in graph.nodes:
        node.input[:] = ["x"] * len(node.input)
    graph.replace(graph.nodes[:2])
    graph.to_model()
    assert model.SerializeToString(deterministic=True) == before


def test_new_nodes_have_new_names():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2] fused_Neg_0) => (float[2] y) { fused_Neg_1 = Abs (fused_Neg_0) y = Neg (fused_Neg_1) }""")
    graph = EditableGraph(model)
    node, name = graph.make("Neg", "fused_Neg_1", like="y")
    assert name == "fused_Neg_2" and list(node.output) == [name] and graph.shape(name) == (2,)
    node, name = graph.make("Abs", "fused_Neg_1", like="y", output="y")
    assert name == "y" and list(node.output) == ["y"]
