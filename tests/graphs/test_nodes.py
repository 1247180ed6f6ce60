"""Attributes, bodies and copies of nodes."""

import pytest
from onnx import TensorProto, parser

from ortlearn.graphs.editing import renamed_node, with_fields
from ortlearn.graphs.nodes import all_nodes, attribute, attributes_of, copy_node, needed_nodes

LOOP = parser.parse_node("""y = Loop (n, , x, outer) <body = b (int64 i, bool c, float v, float w) =>
    (bool k, float u, float t) { k = Not (c) u = Add (v, outer) t = Neg (w) }>""")
MODEL = parser.parse_model("""<ir_version: 9, opset_import: ["": 20]>
    g (float[N] x) => (float[N] y) <float a = {1}> { b = Add (x, a) d = Neg (b) y = Abs (b) }""")


def test_attributes():
    node = parser.parse_node("y = Gemm <alpha = 2.0, transA = 1> (a, b)")
    assert attributes_of(node) == {"alpha": 2.0, "transA": 1}
    assert (attribute(node, "transA"), attribute(node, "beta"), attribute(node, "beta", 1.0)) == (
        1,
        None,
        1.0,
    )


def test_nodes_of_bodies_follow_their_node():
    graph = parser.parse_graph("g (float x) => (float y) { a = Neg (x) y = Abs (a) }")
    graph.node.insert(1, LOOP)
    assert [node.op_type for node in all_nodes(graph)] == ["Neg", "Loop", "Not", "Add", "Neg", "Abs"]


def test_needed_nodes():
    assert [node.output[0] for node in needed_nodes(MODEL.graph.node, ["y"])] == ["b", "y"]
    assert not needed_nodes(MODEL.graph.node, ["x", "a"])


def test_copy_with_other_inputs_or_outputs():
    node = MODEL.graph.node[0]
    assert list(copy_node(node, ["p", "q"]).input) == ["p", "q"] and list(
        copy_node(node, ["p", "q"]).output
    ) == ["b"]
    assert list(copy_node(node, outputs=["r"]).output) == ["r"] and list(node.input) == ["x", "a"]


@pytest.mark.parametrize("name, reads", [("outer", "Add"), ("v", ""), ("w", "")])
def test_names_of_a_body_are_not_replaced(name, reads):
    renamed = renamed_node(LOOP, {name: "new"})
    assert [n.op_type for n in renamed.attribute[0].g.node if "new" in n.input] == [reads] * bool(reads)
    assert "new" not in LOOP.input and (("new" in renamed.input) == (name == "outer"))


def test_node_without_the_names_is_not_copied():
    assert renamed_node(LOOP, {"other": "new"}) is LOOP and renamed_node(LOOP, {}) is LOOP


def test_field_is_replaced_by_a_copy_of_its_values():
    """The values may be those of the replaced field."""
    nodes = MODEL.graph.node
    model = with_fields(MODEL, {"": 1, "ai.onnx.ml": 3}, node=[nodes[0], nodes[2]], value_info=())
    assert [node.output[0] for node in model.graph.node] == ["b", "y"] and len(nodes) == 3
    assert {item.domain: item.version for item in model.opset_import} == {"": 20, "ai.onnx.ml": 3}
    assert model.graph.initializer[0].data_type == TensorProto.FLOAT and model.ir_version == 9
