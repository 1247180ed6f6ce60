"""Renamed weights are in alphabetical order in all graphs, and names can be restored."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, parser

from ortlearn.graphs import initializer_arrays
from ortlearn.models.weight_names import onnx_rename_weights, renamed_weights, restored_names
from ortlearn.trainable.conversion import to_trainable

NESTED = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x, bool condition) => (float[N,1] y)
<float[2,1] w = {1, 2}, float[1] b = {3}>
{
  z = MatMul (x, w)
  y = If (condition) <
    then_branch = one () => (float[N,1] a) <float[1] c = {5}> { t = Add (z, b)  a = Mul (t, c) },
    else_branch = two () => (float[N,1] e) <float[1] b = {100}> { e = Add (z, b) }
  >
}"""
X = np.array([[1, 2], [3, 4]], dtype=np.float32)


def chain(count):
    """Return a graph that adds ``count`` initializers, first z0, then the others in descending order."""
    names = [f"z{i}" for i in reversed(range(count))]
    tensors = [numpy_helper.from_array(np.array([i], np.float32), name) for i, name in enumerate(names)]
    nodes = [
        helper.make_node("Add", [f"t{i}" if i else "x", name], [f"t{i + 1}"]) for i, name in enumerate(names)
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info(f"t{count}", TensorProto.FLOAT, [1])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("count, width", [(1, 1), (10, 1), (11, 2), (100, 2), (101, 3)])
def test_order_and_padding(run_onnx, count, width):
    model = chain(count)
    before = model.SerializeToString()
    renamed = onnx_rename_weights(model)
    assert model.SerializeToString() == before
    names = [tensor.name for tensor in renamed.graph.initializer]
    assert names == sorted(names)
    assert names[0] == f"I{'0' * width}_z{count - 1}"
    assert names[-1] == f"I{count - 1:0{width}d}_z0"
    x = np.ones(1, np.float32)
    np.testing.assert_array_equal(run_onnx(renamed, x)[0], run_onnx(model, x)[0])
    again = onnx_rename_weights(renamed)
    assert again.SerializeToString() == renamed.SerializeToString()


@pytest.mark.parametrize("condition, expected", [(True, [[40], [70]]), (False, [[105], [111]])])
def test_subgraphs_are_renamed_too(run_onnx, condition, expected):
    model = parser.parse_model(NESTED)
    renamed, names = renamed_weights(model)
    checker.check_model(renamed, full_check=True)
    one, two = (attribute.g for attribute in renamed.graph.node[1].attribute)
    assert list(initializer_arrays(renamed)) == ["I0_w", "I1_b"]
    assert [tensor.name for tensor in one.initializer] == ["I2_c"]
    assert [tensor.name for tensor in two.initializer] == ["I3_b"]
    assert names == {"I0_w": "w", "I1_b": "b", "I2_c": "c", "I3_b": "b"}
    np.testing.assert_array_equal(run_onnx(renamed, X, np.array(condition))[0], expected)
    assert onnx_rename_weights(renamed).SerializeToString() == renamed.SerializeToString()
    assert restored_names(renamed, names).SerializeToString() == model.SerializeToString()


def test_body_input_with_the_name_of_an_initializer():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[1] x, int64 count) => (float[1] y) <float[1] w = {3}, bool yes = {1}>
        {
          y = Loop (count, yes, x) <
            body = once (int64 i, bool going, float[1] w) => (bool again, float[1] next)
            { again = Identity (going)  next = Add (w, w) }
          >
        }"""
    )
    body = onnx_rename_weights(model).graph.node[0].attribute[0].g
    assert body.SerializeToString() == model.graph.node[0].attribute[0].g.SerializeToString()


def test_new_name_exists_already():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x) => (float[N,1] y) <float[2,1] coef = {1, 2}, float[1] b = {3}>
        { I0_coef = MatMul (x, coef)  y = Add (I0_coef, b) }"""
    )
    renamed = onnx_rename_weights(model)
    checker.check_model(renamed, full_check=True)
    assert [tensor.name for tensor in renamed.graph.initializer] == ["I0_coef_", "I1_b"]
    assert onnx_rename_weights(renamed).SerializeToString() == renamed.SerializeToString()


def test_other_numbered_names(run_onnx):
    model = chain(3)
    mapping = {"z2": "I2_z", "z1": "I0_z", "z0": "I1_z"}
    for tensor in model.graph.initializer:
        tensor.name = mapping[tensor.name]
    for node in model.graph.node:
        node.input[:] = [mapping.get(name, name) for name in node.input]
    renamed = onnx_rename_weights(model)
    assert [tensor.name for tensor in renamed.graph.initializer] == ["I0_z", "I1_z", "I2_z"]
    np.testing.assert_array_equal([a[0] for a in initializer_arrays(renamed).values()], [0, 1, 2])
    np.testing.assert_array_equal(run_onnx(renamed, np.ones(1, np.float32))[0], [4])


def test_trained_model_has_original_names(run_onnx):
    text = NESTED.replace(", bool condition", "").replace("{\n  z", "{\n  condition = Not (no)\n  z")
    model = parser.parse_model(text.replace("float[1] b = {3}", "float[1] b = {3}, bool no = {0}"))
    trainable = to_trainable(model)
    assert trainable.trained == ["I0_w", "I1_b", "I4_b_2"]
    back = trainable.with_weights({"I0_w": np.zeros((2, 1), np.float32)})
    checker.check_model(back, full_check=True)
    assert list(initializer_arrays(back)) == ["w", "b", "no"]
    branches = [attribute.g for node in back.graph.node for attribute in node.attribute if attribute.g.node]
    assert [[tensor.name for tensor in graph.initializer] for graph in branches] == [["c"], ["b"]]
    np.testing.assert_allclose(run_onnx(back, X)[0], [[15], [15]])  # the branch has its own b
