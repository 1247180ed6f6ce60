"""Views of graphs: producers, readers, constants, types, and graphs with replaced nodes."""

import numpy as np
import pytest
from onnx import checker, parser

from ortlearn.graphs import prune, replace_nodes
from ortlearn.graphs.nodes import copy_node
from ortlearn.graphs.view import GraphView

TEXT = """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
    g (float[N,2] x, double[3] d, int64 n, bool c) => (float[N,2] y, float[N,2] u, double[3] e)
    <float half = {0.5}, float[1,1] one = {1}, float[2] two = {1, 1}, float[2] unused = {3, 4}>
    { a = Mul (x, half) b = Add (a, a) s = ai.onnx.ml.Scaler (b) r = Relu (s) e = Neg (d) y = Mul (r, two)
      dead = Neg (r)
      u = If (c) <then_branch = t () => (float[N,2] p) { p = Neg (r) },
                  else_branch = f () => (float[N,2] q) { q = Abs (b) }> }"""


@pytest.fixture
def graph():
    return GraphView(parser.parse_model(TEXT))


def test_producers_are_of_the_default_domain(graph):
    assert graph.producer("a").op_type == graph.producer("a", "Mul").op_type == "Mul"
    assert graph.producer("a", "Add") is None
    assert graph.producer("s").op_type == "Scaler" and graph.producer("s", "Scaler") is None
    assert graph.producer("x") is None and graph.producer("half") is None


def test_skipped_nodes(graph):
    assert graph.origin("r", ("Relu", "Scaler")) == "b" and graph.origin("r") == "r"
    assert graph.producer("r", passing=("Relu", "Scaler")).op_type == "Add"
    assert graph.producer("r", "Add", passing=("Relu", "Scaler")).op_type == "Add"
    assert graph.producer("a", passing=("Mul",)) is None


def test_readers(graph):
    assert graph.read_once("s") and graph.read_once("half")
    assert not graph.read_once("a")  # twice by one node
    assert not graph.read_once("b")  # by a node and in a subgraph
    assert not graph.read_once("y")  # an output of the graph
    assert not graph.read_once("unused")


def test_kept_names(graph):
    assert graph.keeps_name("y") and graph.keeps_name("b") and graph.keeps_name("r")
    assert not graph.keeps_name("a") and not graph.keeps_name("s")


def test_constants(graph):
    assert graph.is_constant("half", 0.5) and graph.is_constant("one", 1)
    assert not graph.is_constant("half", 1) and not graph.is_constant("two", 1)
    assert not graph.is_constant("x", 1) and graph.value("x") is None
    name = graph.op.constant(np.ones((3, 1)))
    assert graph.sizes(name) == (3, 1) and graph.is_float(name)
    np.testing.assert_array_equal(graph.value(name), np.ones((3, 1)))


def test_types(graph):
    assert graph.sizes("x") is None  # unknown number of samples
    assert (graph.sizes("d"), graph.sizes("half"), graph.sizes("one")) == ((3,), (), (1, 1))
    assert graph.is_single("half") and graph.is_single("one") and graph.is_single("n")
    assert not graph.is_single("two") and not graph.is_single("x") and not graph.is_single("nobody")
    assert graph.is_float("x") and graph.is_float("e")
    assert not graph.is_float("n") and not graph.is_float("c") and not graph.is_float("nobody")


def test_default_of_an_input_is_not_constant():
    graph = GraphView(
        parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[1] w) => (float[1] y) <float[1] w = {1}, float[1] v = {1}> {
          a = Constant <value = float[1] {2}> () b = Constant <value_ints = [3, 4]> ()
          c = Constant <value_float = 5.0> () d = Constant <value_string = "text"> ()
          z = Add (w, v) y = Add (z, a) }""")
    )
    assert graph.value("w") is None and graph.value("v") == 1
    assert graph.value("a") == 2 and graph.value("b").tolist() == [3, 4] and graph.value("c") == 5
    assert graph.value("d") == b"text" and graph.value("z") is None


def test_unused_nodes_are_dropped(graph):
    graph.drop_unused()
    assert [node.op_type for node in graph.nodes] == ["Mul", "Add", "Scaler", "Relu", "Neg", "Mul", "If"]
    model = prune(graph.to_model())
    assert [tensor.name for tensor in model.graph.initializer] == ["half", "two"]
    assert [value.name for value in model.graph.output] == ["y", "u", "e"]


def test_model_is_not_changed():
    model = parser.parse_model(TEXT)
    before = model.SerializeToString(deterministic=True)
    graph = GraphView(model)
    graph.rewrite(lambda node: node.op_type in ("Relu", "Add") and node.input[0])
    graph.rename({"a": "other"})
    graph.drop_unused()
    assert graph.to_model().SerializeToString(deterministic=True) != before
    assert model.SerializeToString(deterministic=True) == before


def test_new_nodes_have_new_names():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2] new_Neg_0) => (float[2] y) { new_Neg_1 = Abs (new_Neg_0) y = Neg (new_Neg_1) }""")
    graph = GraphView(model, prefix="new_")
    name = graph.copy_type(graph.op.Neg("new_Neg_1"), "y")
    assert name == "new_Neg_2" and graph.sizes(name) == (2,)


def test_tensor_returned_by_a_rule_replaces_the_output():
    """Later nodes and subgraphs read it, except a subgraph with a tensor of the same name."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2] x, bool c) => (float[2] y, float[2] u, float[2] k)
        { a = Identity (x) b = Identity (a) k = Identity (b) y = Neg (b)
          u = If (c) <then_branch = t () => (float[2] p) { p = Neg (b) },
                      else_branch = f () => (float[2] q) { b = Abs (a) q = Exp (b) }> }""")
    graph = GraphView(model)
    assert graph.rewrite(lambda node: node.op_type == "Identity" and node.input[0])
    assert [(n.op_type, list(n.input)) for n in graph.nodes] == [
        ("Identity", ["x"]),
        ("Neg", ["x"]),
        ("If", ["c"]),
    ]
    then, other = (a.g for a in graph.nodes[-1].attribute)
    assert [list(n.input) for n in (*then.node, *other.node)] == [["x"], ["x"], ["b"]]
    checker.check_model(graph.to_model(), full_check=True)


def test_nodes_of_a_rule_that_returns_false(graph):
    def rule(node):
        graph.op.Abs(node.input[0])
        return False

    nodes = list(graph.nodes)
    assert not graph.rewrite(rule) and graph.nodes == nodes


def test_tables_are_updated_with_the_nodes(graph):
    assert graph.read_once("s") and "s" in graph.producers
    graph.rewrite(lambda node: node.output[0] == "s" and node.input[0])
    assert not graph.readers.get("s") and "s" not in graph.producers and graph.producer("r").input[0] == "b"


def test_rule_that_copies_a_node():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2] x) => (float[2] y) { y = Add (x, x) }""")

    def rule(node, op):
        op.nodes.append(copy_node(node, [node.input[0], op.Neg(node.input[1])]))
        return True

    nodes = replace_nodes(model, {("", "Add"): rule}).graph.node
    assert [(n.op_type, list(n.input)) for n in nodes] == [("Neg", ["x"]), ("Add", ["x", "Neg_0"])]


def test_producers_read_renamed_tensors():
    graph = GraphView(
        parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[2] x) => (float[2] y) { a = Identity (x) b = Neg (a) y = Neg (b) }""")
    )
    assert graph.producers["b"].input[0] == "a"

    def rule(node):
        if node.op_type == "Identity":
            return node.input[0]
        inner = graph.producer(node.input[0], "Neg")
        return inner is not None and inner.input[0]

    graph.rewrite(rule)
    assert [(n.op_type, *n.input, *n.output) for n in graph.nodes][-1] == ("Identity", "x", "y")
