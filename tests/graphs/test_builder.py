"""The builder writes valid nodes with unique names."""

import copy

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from ortlearn.graphs import GraphBuilder, TensorType, append_nodes


def build(op, output, **inputs):
    """Return a model with the nodes of a builder."""
    infos = [helper.make_tensor_value_info(name, elem_type, "NK") for name, elem_type in inputs.items()]
    out = helper.make_tensor_value_info(output, TensorProto.FLOAT, "N")
    graph = helper.make_graph(op.nodes, "g", infos, [out], op.initializers)
    opsets = [helper.make_opsetid(domain, version) for domain, version in op.opsets.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_graph_is_valid_and_computes_its_value(run_onnx):
    op = GraphBuilder()
    output = op.ReduceSum(op.Mul(op.Add("x", 1.0), op.Add("x", 1.0)), [1], keepdims=0)
    model = build(op, output, x=TensorProto.FLOAT)
    checker.check_model(model, full_check=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(run_onnx(model, x)[0], ((x + 1) ** 2).sum(axis=1))


def test_equal_constants_are_shared():
    op = GraphBuilder()
    assert op.constant(1.0) == op.constant(1.0)
    assert op.constant([1, 2]) == op.constant([1, 2])
    assert len(op.initializers) == 2


@pytest.mark.parametrize(
    "one, other",
    [(1.0, 1), (1.0, [1.0]), ([1, 2], [[1, 2]]), (0.0, -0.0), (np.float32(0), np.int32(0)), (["a"], ["b"])],
)
def test_different_constants_are_not_shared(one, other):
    op = GraphBuilder()
    one, other = (np.asarray(v, dtype=object) if v in (["a"], ["b"]) else v for v in (one, other))
    assert op.constant(one) != op.constant(other)


@pytest.mark.parametrize(
    "value, options, expected",
    [
        (1.5, {}, np.float32),
        (1.5, {"dtype": np.float64}, np.float64),
        ([1.0, 2.0], {"dtype": np.float64}, np.float64),
        (3, {"dtype": np.float64}, np.int64),
        ([], {}, np.int64),
        (True, {}, np.bool_),
        (np.float64(1.5), {}, np.float64),
        (np.arange(3, dtype=np.int32), {}, np.int32),
    ],
)
def test_types_of_constants(value, options, expected):
    op = GraphBuilder(**options)
    name = op.constant(value)
    assert numpy_helper.to_array(op.initializers[0]).dtype == expected
    assert op.dtype(name) == expected
    assert op.shape(name) == np.shape(value)


def test_constant_of_a_given_type():
    op = GraphBuilder()
    op.constant([1, 0], dtype=np.bool_)
    np.testing.assert_array_equal(numpy_helper.to_array(op.initializers[0]), [True, False])


def test_noncontiguous_arrays():
    op = GraphBuilder()
    array = np.arange(6.0).reshape(2, 3).T
    op.constant(array)
    np.testing.assert_array_equal(numpy_helper.to_array(op.initializers[0]), array)
    op.constant(np.array(2.0)[()])
    assert tuple(op.initializers[1].dims) == ()


def test_names_are_unique_in_the_graph():
    op = GraphBuilder(existing_names={"Neg_0", "Neg_2", "constant_0", "node_Neg_0"}, prefix="")
    outputs = [op.Neg("x") for _ in range(3)]
    assert outputs == ["Neg_1", "Neg_3", "Neg_4"]
    assert op.constant(1.0) == "constant_1"
    names = [node.name for node in op.nodes] + outputs
    assert len(set(names)) == len(names) and "node_Neg_0" not in names


def test_prefix_and_claims():
    op = GraphBuilder(prefix="loss_", existing_names={"taken"})
    assert op.Neg("x") == "loss_Neg_0"
    assert not op.claim("taken")
    assert op.claim("free") and not op.claim("free")


def test_given_outputs_are_reserved():
    op = GraphBuilder()
    assert op.node("Neg", "x", outputs=["Neg_0"]) == "Neg_0"
    assert op.Neg("x") == "Neg_1"


def test_omitted_inputs():
    op = GraphBuilder()
    op.Clip("x", "", 1.0)
    assert list(op.nodes[0].input) == ["x", "", "constant_0"]
    op.Clip("x", "", "")
    assert list(op.nodes[1].input) == ["x"]


def test_attributes_of_value_none_are_omitted():
    op = GraphBuilder()
    op.ReduceSum("x", keepdims=0, noop_with_empty_axes=None)
    assert {a.name for a in op.nodes[0].attribute} == {"keepdims"}


def test_several_outputs():
    op = GraphBuilder()
    values, indices = op.TopK("x", [1], n_outputs=2)
    assert list(op.nodes[0].output) == [values, indices] and values != indices


def test_add_attribute():
    op = GraphBuilder()
    op.Neg("x")
    op.Softmax("x")
    op.add_attribute(helper.make_attribute("axis", 1))
    assert [len(node.attribute) for node in op.nodes] == [0, 1]


def test_domains_are_imported_once(run_onnx):
    op = GraphBuilder(21)
    op.node("Scaler", "x", domain="ai.onnx.ml", domain_version=3, offset=[1.0], scale=[2.0], outputs=["y"])
    assert op.opsets == {"": 21, "ai.onnx.ml": 3}
    empty = helper.make_model(
        helper.make_graph([], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1])], []),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])
    model = append_nodes(empty, op, outputs=[output])
    assert [(i.domain, i.version) for i in model.opset_import] == [("", 18), ("ai.onnx.ml", 3)]
    np.testing.assert_allclose(run_onnx(model, np.array([[3]], np.float32))[0], [[4]])


def test_types_of_tensors():
    op = GraphBuilder(types={"x": TensorType(TensorProto.DOUBLE, ("N", 3))})
    assert (op.dtype("x"), op.shape("x")) == (np.float64, ("N", 3))
    assert (op.type("?"), op.dtype("?"), op.shape("?")) == (None, None, None)
    assert op.set_type("z", TensorProto.INT64) == "z"
    assert (op.dtype("z"), op.shape("z")) == (np.int64, None)


def test_only_capitalised_names_are_operators():
    with pytest.raises(AttributeError, match="relu"):
        GraphBuilder().relu("x")
    assert copy.deepcopy(GraphBuilder(17)).opset == 17


def test_unknown_operators_are_rejected():
    with pytest.raises(ValueError, match="ONNX has no operator 'Square'"):
        GraphBuilder().Square("x")
    assert GraphBuilder().Square("x", domain="mine") == "Square_0"
