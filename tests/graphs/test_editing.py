"""Editing functions return correct new models and do not change their argument."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, parser

from ortlearn import graphs
from ortlearn.graphs import GraphBuilder, TensorType

LINEAR = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x) => (float[N,1] y, float[N,1] other)
<float[2,1] w = {1, 2}, float[1] b = {3}, float[1] unused = {4}>
{ z = MatMul (x, w)  y = Add (z, b)  other = Neg (z)  lost = Abs (z) }"""
IF = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x, bool condition) => (float[N,1] y)
<float[2,1] w = {1, 2}, float[1] b = {3}, float[1] unused = {4}>
{
  z = MatMul (x, w)
  y = If (condition) <
    then_branch = one () => (float[N,1] a) { a = Add (z, b) },
    else_branch = two () => (float[N,1] c) <float[1] b = {100}> { c = Add (z, b) }
  >
}"""
LOOP = """<ir_version: 8, opset_import: ["": 18]>
g (float[1] x, int64 count) => (float[1] y)
<float[1] b = {3}, float[1] start = {1}, bool yes = {1}>
{
  hidden = Mul (x, start)
  y = Loop (count, yes, hidden) <
    body = once (int64 i, bool going, float[1] carried) => (bool again, float[1] next)
    { again = Identity (going)  next = Add (carried, b) }
  >
}"""
OLD = """<ir_version: 3, opset_import: ["": 13]>
g (float[N,2] x, float[2,1] w, float[1] unused) => (float[N,1] y)
<float[2,1] w = {1, 2}, float[1] unused = {4}> { y = MatMul (x, w) }"""
X = np.array([[1, 2], [3, 4]], dtype=np.float32)
Z = X @ np.array([[1], [2]], dtype=np.float32)

BUILDER = GraphBuilder(existing_names={"Neg_0"})
BUILDER.Neg("y")
EDITS = {
    "append_nodes": lambda m: graphs.append_nodes(m, BUILDER, outputs=[m.graph.output[0]], first=True),
    "copy_model": graphs.copy_model,
    "extract_model": lambda m: graphs.extract_model(m, ["y"]),
    "make_initializers_of": lambda m: graphs.make_initializers_of(m, []),
    "make_inputs_of": lambda m: graphs.make_inputs_of(m, ["b"]),
    "map_names": lambda m: graphs.map_names(m, {"b": "new", "y": "result"}),
    "name_nodes": graphs.name_nodes,
    "prune": graphs.prune,
    "set_initializers": lambda m: graphs.set_initializers(m, {"b": np.ones(1, np.float32)}),
    "value_types": graphs.value_types,
    "graph_names": lambda m: graphs.graph_names(m.graph),
    "initializer_arrays": lambda m: [a.fill(7) for a in map(np.copy, graphs.initializer_arrays(m).values())],
}


@pytest.mark.parametrize("text", [LINEAR, IF, LOOP], ids=["linear", "if", "loop"])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_argument_is_not_changed(edit, text):
    model = parser.parse_model(text)
    before = model.SerializeToString(deterministic=True)
    result = edit(model)
    assert result is not model
    assert model.SerializeToString(deterministic=True) == before


def test_all_functions_of_models_are_tested():
    others = {
        "GraphBuilder",
        "count_nodes",
        "TensorType",
        "make_value_info",
        "node_inputs",
        "opset_versions",
        "subgraphs",
    }
    files = (".editing", ".parts", ".queries", ".types")
    editing = [name for name in graphs.__all__ if getattr(graphs, name).__module__.endswith(files)]
    assert set(editing) - others == set(EDITS)


def test_copy_is_independent():
    model = parser.parse_model(LINEAR)
    copied = graphs.prune(model)
    copied.graph.node[0].name = "changed"
    assert model.graph.node[0].name != "changed"


def test_names_of_a_graph():
    names = graphs.graph_names(parser.parse_model(IF).graph)
    assert {"x", "condition", "y", "z", "w", "b", "a", "c", "unused"} <= names
    assert "" not in names


def test_node_inputs_include_captured_tensors():
    branch = parser.parse_model(IF).graph.node[1]
    assert graphs.node_inputs(branch) == {"condition", "z", "b"}
    assert [graph.name for graph in graphs.subgraphs(branch)] == ["one", "two"]
    loop = parser.parse_model(LOOP).graph.node[1]
    assert graphs.node_inputs(loop) == {"count", "yes", "hidden", "b"}


def test_arrays_and_opsets():
    model = parser.parse_model(LINEAR)
    assert list(graphs.initializer_arrays(model)) == ["w", "b", "unused"]
    assert list(graphs.initializer_arrays(model, ["unused", "w"])) == ["w", "unused"]
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    model.opset_import[0].domain = "ai.onnx"
    assert graphs.opset_versions(model) == {"": 18, "ai.onnx.ml": 3}


def test_set_initializers(run_onnx):
    model = graphs.set_initializers(parser.parse_model(LINEAR), {"b": np.array([10], np.float32)})
    np.testing.assert_allclose(run_onnx(model, X)[0], Z + 10)


@pytest.mark.parametrize("value", [np.ones(2, np.float32), np.ones(1), np.ones((), np.float32)])
def test_set_initializers_rejects_other_shapes_and_types(value):
    with pytest.raises(ValueError, match="'b' has shape and type"):
        graphs.set_initializers(parser.parse_model(LINEAR), {"b": value})


def test_set_initializers_rejects_unknown_names():
    with pytest.raises(KeyError, match="missing"):
        graphs.set_initializers(parser.parse_model(LINEAR), {"missing": np.ones(1)})


def test_value_types():
    types = graphs.value_types(parser.parse_model(LINEAR))
    assert types["z"] == types["y"] == TensorType(TensorProto.FLOAT, ("N", 1))
    assert types["w"] == TensorType(TensorProto.FLOAT, (2, 1))
    assert "z" not in graphs.value_types(parser.parse_model(LINEAR), infer=False)


def test_value_infos_keep_types():
    for known in (TensorType(1, ("N", None, 3)), TensorType(7, ()), TensorType(11)):
        model = helper.make_model(helper.make_graph([], "g", [graphs.make_value_info("x", known)], []))
        assert graphs.value_types(model, infer=False) == {"x": known}
    assert graphs.make_value_info("x", None).name == "x"


@pytest.mark.parametrize("condition, added", [(True, 3), (False, 100)])
def test_renaming_in_subgraphs_except_shadowing_names(run_onnx, condition, added):
    mapping = {"w": "coef", "b": "bias", "z": "product", "x": "X", "y": "Y"}
    model = graphs.map_names(parser.parse_model(IF), mapping)
    checker.check_model(model, full_check=True)
    (result,) = run_onnx(model, X, np.array(condition))
    np.testing.assert_allclose(result, Z + added)
    one, two = graphs.subgraphs(model.graph.node[1])
    assert list(one.node[0].input) == ["product", "bias"]
    assert list(two.node[0].input) == ["product", "b"]


def test_renaming_in_a_loop(run_onnx):
    model = graphs.map_names(parser.parse_model(LOOP), {"b": "step", "going": "no such name outside"})
    checker.check_model(model, full_check=True)
    (result,) = run_onnx(model, np.zeros(1, np.float32), np.array(4))
    np.testing.assert_allclose(result, [12])
    assert [value.name for value in model.graph.node[1].attribute[0].g.input] == ["i", "going", "carried"]


def test_nodes_get_unique_names():
    model = parser.parse_model(LINEAR)
    for node, name in zip(model.graph.node, ["same", "same", "", "Neg_2"], strict=True):
        node.name = name
    names = [node.name for node in graphs.name_nodes(model).graph.node]
    assert len(set(names)) == 4 and names[0] == "same" and "" not in names


def test_pruning(run_onnx):
    model = graphs.prune(parser.parse_model(LINEAR))
    assert [node.op_type for node in model.graph.node] == ["MatMul", "Add", "Neg"]
    assert list(graphs.initializer_arrays(model)) == ["w", "b"]
    np.testing.assert_allclose(run_onnx(model, X)[0], Z + 3)
    kept = graphs.prune(parser.parse_model(LINEAR), keep=lambda node: node.op_type == "Abs")
    assert [node.op_type for node in kept.graph.node] == ["MatMul", "Add", "Neg", "Abs"]


@pytest.mark.parametrize("text, feeds", [(IF, (X, np.array(True))), (LOOP, (X[:1, 0], np.array(2)))])
def test_pruning_keeps_captured_tensors(run_onnx, text, feeds):
    model = parser.parse_model(text)
    pruned = graphs.prune(model)
    assert "b" in graphs.initializer_arrays(pruned) and "unused" not in graphs.initializer_arrays(pruned)
    np.testing.assert_array_equal(run_onnx(pruned, *feeds)[0], run_onnx(model, *feeds)[0])


def test_pruning_an_old_model_drops_the_inputs_of_unused_defaults(run_onnx):
    model = graphs.prune(parser.parse_model(OLD))
    assert [value.name for value in model.graph.input] == ["x", "w"]
    np.testing.assert_allclose(run_onnx(model, X)[0], Z)


def test_extraction_to_an_inner_tensor(run_onnx):
    part = graphs.extract_model(parser.parse_model(LINEAR), ["z"])
    checker.check_model(part, full_check=True)
    assert [node.op_type for node in part.graph.node] == ["MatMul"]
    assert list(graphs.initializer_arrays(part)) == ["w"]
    np.testing.assert_allclose(run_onnx(part, X)[0], Z)


def test_extraction_from_an_inner_tensor(run_onnx):
    part = graphs.extract_model(parser.parse_model(LINEAR), ["y", "other"], ["z"])
    checker.check_model(part, full_check=True)
    assert [value.name for value in part.graph.input] == ["z"]
    first, second = run_onnx(part, Z)
    np.testing.assert_allclose(first, Z + 3)
    np.testing.assert_allclose(second, -Z)


def test_extraction_from_an_initializer_makes_it_an_input(run_onnx):
    part = graphs.extract_model(parser.parse_model(LINEAR), ["y"], ["x", "w"])
    assert [value.name for value in part.graph.input] == ["x", "w"]
    assert list(graphs.initializer_arrays(part)) == ["b"]
    np.testing.assert_allclose(run_onnx(part, X, np.ones((2, 1), np.float32))[0], X.sum(1)[:, None] + 3)


def test_extraction_through_a_subgraph(run_onnx):
    part = graphs.extract_model(parser.parse_model(IF), ["y"], ["z", "condition"])
    checker.check_model(part, full_check=True)
    assert [node.op_type for node in part.graph.node] == ["If"]
    np.testing.assert_allclose(run_onnx(part, Z, np.array(True))[0], Z + 3)


def test_extraction_cuts_at_a_node_with_an_omitted_output():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N,1] y)
        <int64[1] k = {1}> { v, skipped = TopK (x, k)  y = Neg (v) }"""
    )
    model.graph.node[0].output[1] = ""
    part = graphs.extract_model(model, ["y"], ["v"])
    checker.check_model(part, full_check=True)
    assert [node.op_type for node in part.graph.node] == ["Neg"]


def test_extraction_from_one_of_two_outputs_of_a_node(run_onnx):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,3] x) => (float[N,2] y) <int64[1] two = {2}>
        { values, places = TopK (x, two)  floats = Cast <to = 1> (places)  y = Add (values, floats) }"""
    )
    x = np.array([[3, 1, 2]], dtype=np.float32)
    part = graphs.extract_model(model, ["y"], ["x", "places"])
    checker.check_model(part)
    (result,) = run_onnx(part, x=x, places=np.array([[10, 20]]))
    np.testing.assert_array_equal(result, [[13, 22]])
    alone = graphs.extract_model(model, ["floats"], ["x", "places"])
    assert [node.op_type for node in alone.graph.node] == ["Cast"]


def test_extraction_keeps_the_defaults_of_an_old_model(run_onnx):
    part = graphs.extract_model(parser.parse_model(OLD), ["y"])
    checker.check_model(part)
    assert list(graphs.initializer_arrays(part)) == ["w"]
    np.testing.assert_allclose(run_onnx(part, X)[0], Z)


def test_extraction_of_an_unknown_tensor():
    with pytest.raises(KeyError, match="nothing"):
        graphs.extract_model(parser.parse_model(LINEAR), ["nothing"])


def test_initializers_to_inputs_and_back(run_onnx):
    model = graphs.make_inputs_of(parser.parse_model(LINEAR), ["b", "w"])
    assert [value.name for value in model.graph.input] == ["x", "b", "w"]
    assert list(graphs.initializer_arrays(model)) == ["unused"]
    weights = {"b": np.array([5], np.float32), "w": np.array([[1], [1]], np.float32)}
    np.testing.assert_allclose(run_onnx(model, X, **weights)[0], X.sum(1)[:, None] + 5)
    back = graphs.make_initializers_of(model, ["w", "b"])
    assert [value.name for value in back.graph.input] == ["x"]
    assert list(graphs.initializer_arrays(back)) == ["unused", "w", "b"]
    np.testing.assert_array_equal(run_onnx(back, X)[0], np.zeros((2, 1)))


@pytest.mark.parametrize("first", [False, True])
def test_appended_nodes(run_onnx, first):
    model = parser.parse_model(LINEAR)
    op = GraphBuilder(existing_names=graphs.graph_names(model.graph))
    name = op.Mul("label" if first else "y", 2.0)
    label = helper.make_tensor_value_info("label", TensorProto.FLOAT, ["N", 1])
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1])
    longer = graphs.append_nodes(model, op, inputs=[label], outputs=[output], first=first)
    checker.check_model(longer, full_check=True)
    assert longer.graph.node[0 if first else -1].op_type == "Mul"
    expected = 2 * np.ones((2, 1)) if first else 2 * (Z + 3)
    np.testing.assert_allclose(run_onnx(longer, X, np.ones((2, 1), np.float32))[0], expected)
    assert [o.name for o in graphs.append_nodes(model, op, inputs=[label]).graph.output] == ["y", "other"]
