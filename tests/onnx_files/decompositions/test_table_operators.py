"""ArrayFeatureExtractor, LabelEncoder and FeatureVectorizer, as standard operators, against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays, make_inputs_of
from ortlearn.onnx_files.decompositions import decompose_operators
from tests.onnx_files.decompositions.comparisons import with_loss

ML = "ai.onnx.ml"


def model_of(node, inputs, outputs, initializers=(), ml=3):
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        list(initializers),
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, ml)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def plain_of(model):
    plain = decompose_operators(model)
    if all(value.type.tensor_type.HasField("shape") for value in plain.graph.output):
        checker.check_model(plain, full_check=True)
    return plain


@pytest.mark.parametrize(
    "shape, columns",
    [((4, 3), [2, 0]), ((4,), [3, 1, 1]), ((2, 2, 3), [1]), ((4, 3), [[0, 2], [1, 1]]), ((4, 3), 1)],
    ids=["matrix", "vector", "three axes", "columns as a matrix", "columns as a number"],
)
@pytest.mark.parametrize("kind", ["float32", "int64", "text"])
@pytest.mark.parametrize("constant", [True, False])
def test_array_feature_extractor(run_onnx, shape, columns, kind, constant):
    data = np.arange(np.prod(shape)).reshape(shape)
    data = np.vectorize(str, otypes=[object])(data) if kind == "text" else data.astype(kind)
    columns = np.array(columns, dtype=np.int64)
    elem_type = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "text": TensorProto.STRING}[kind]
    inputs = [("x", elem_type, shape), ("i", TensorProto.INT64, columns.shape)]
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain=ML)
    stored = [numpy_helper.from_array(columns, "i")] if constant else []
    model = model_of(node, inputs[: 1 if constant else 2], [("y", elem_type, None)], stored)
    plain = plain_of(model)
    assert "ArrayFeatureExtractor" not in {node.op_type for node in plain.graph.node}
    feeds = {"x": data} if constant else {"x": data, "i": columns}
    (expected,), (found,) = run_onnx(model, **feeds), run_onnx(plain, **feeds)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_array_feature_extractor_of_unknown_rank_is_unchanged():
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain=ML)
    inputs = [("x", TensorProto.FLOAT, None), ("i", TensorProto.INT64, [1])]
    model = model_of(node, inputs, [("y", TensorProto.FLOAT, None)])
    assert decompose_operators(model) is model


ENCODERS = {
    "int64": ({"keys_int64s": [4, -1, 7]}, np.array([[7], [4], [5], [-1]])),
    "float": ({"keys_floats": [0.5, 2.0, -1.0]}, np.array([[2.0], [0.5], [9.0], [-1.0]], np.float32)),
    "text": ({"keys_strings": ["a", "é", ""]}, np.array([["é"], ["a"], ["nobody"], [""]], object)),
    "twice": ({"keys_int64s": [4, 4, 7]}, np.array([[7], [4], [5], [-1]])),
}


@pytest.mark.parametrize("ml", [2, 3, 4])
@pytest.mark.parametrize("default", [{"default_float": 9.5}, {}], ids=["default", "no default"])
@pytest.mark.parametrize("name", ENCODERS)
def test_label_encoder(run_onnx, name, default, ml):
    keys, data = ENCODERS[name]
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain=ML, values_floats=[0.25, -3.0, 8.0], **keys, **default
    )
    elem_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    model = model_of(node, [("x", elem_type, ["N", 1])], [("y", TensorProto.FLOAT, ["N", 1])], ml=ml)
    plain = plain_of(model)
    np.testing.assert_array_equal(run_onnx(plain, data)[0], run_onnx(model, data)[0])
    table = initializer_arrays(plain)["table"]
    np.testing.assert_array_equal(table, [0.25, -3.0, 8.0, default.get("default_float", 0.0)])


@pytest.mark.parametrize("keys", [np.array([4, -1]), np.array([0.5, 2.0], np.float32), np.array(["a", "b"])])
def test_label_encoder_of_tensors(run_onnx, keys):
    keys = keys.astype(object) if keys.dtype.kind == "U" else keys
    node = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain=ML,
        keys_tensor=numpy_helper.from_array(keys, "keys"),
        values_tensor=numpy_helper.from_array(np.array([1.5, 2.5], np.float32), "values"),
        default_tensor=numpy_helper.from_array(np.array([-7.0], np.float32), "default"),
    )
    elem_type = helper.np_dtype_to_tensor_dtype(keys.dtype)
    model = model_of(node, [("x", elem_type, ["N"])], [("y", TensorProto.FLOAT, ["N"])], ml=4)
    data = np.append(keys[::-1], keys[:1] * 3)
    expected = [2.5, 1.5, -7.0]
    np.testing.assert_array_equal(run_onnx(model, data)[0], expected)
    np.testing.assert_array_equal(run_onnx(plain_of(model), data)[0], expected)


@pytest.mark.parametrize("values", [{"values_int64s": [1, 2]}, {"values_strings": ["a", "b"]}])
def test_other_encoders_are_unchanged(values):
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_int64s=[4, 5], **values)
    elem_type = TensorProto.INT64 if "values_int64s" in values else TensorProto.STRING
    model = model_of(node, [("x", TensorProto.INT64, ["N"])], [("y", elem_type, ["N"])])
    assert decompose_operators(model) is model


@pytest.mark.needs_training
@pytest.mark.parametrize("backend", ["rules", "ort"])
def test_gradient_of_encoder_values(run_onnx, backend):
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain=ML, keys_int64s=[4, 7], values_floats=[0.25, -3.0]
    )
    model = plain_of(model_of(node, [("x", TensorProto.INT64, ["N"])], [("y", TensorProto.FLOAT, ["N"])]))
    onx = gradient_of_loss(make_inputs_of(with_loss(model, "y", "y"), ["table"]), "loss", ["table"], backend)
    feeds = {"x": np.array([4, 7, 4, 100]), "table": np.array([1.0, 2.0, 3.0], np.float32)}
    np.testing.assert_allclose(run_onnx(onx, **feeds)[1], [4.0, 4.0, 6.0])


def test_feature_vectorizer(run_onnx):
    node = helper.make_node("FeatureVectorizer", ["a", "b"], ["y"], domain=ML, inputdimensions=[2, 1])
    inputs = [("a", TensorProto.FLOAT, ["N", 2]), ("b", TensorProto.INT64, ["N", 1])]
    plain = plain_of(model_of(node, inputs, [("y", TensorProto.FLOAT, ["N", 3])]))
    a, b = np.array([[1.5, 2.0], [3.0, 4.0]], np.float32), np.array([[7], [8]])
    np.testing.assert_array_equal(run_onnx(plain, a, b)[0], [[1.5, 2.0, 7.0], [3.0, 4.0, 8.0]])
    inputs[0] = ("a", TensorProto.FLOAT, ["N", 3])  # one column more than inputdimensions
    with pytest.raises(ConversionError, match="the first input has 3 columns"):
        decompose_operators(model_of(node, inputs, [("y", TensorProto.FLOAT, ["N", 3])]))


def test_a_chain_of_operators_whose_types_onnx_does_not_infer(run_onnx):
    nodes = [
        helper.make_node("FeatureVectorizer", ["a", "b"], ["c"], domain=ML, inputdimensions=[1, 1]),
        helper.make_node("Imputer", ["c"], ["d"], domain=ML, imputed_value_floats=[1.0, 2.0],
                         replaced_value_float=np.nan),
        helper.make_node("Normalizer", ["d"], ["e"], domain=ML, norm="L1"),
        helper.make_node("Scaler", ["e"], ["y"], domain=ML, offset=[0.5], scale=[2.0]),
    ]  # fmt: skip
    inputs = [(name, TensorProto.FLOAT, ["N", 1]) for name in "ab"]
    model = model_of(nodes[0], inputs, [("y", TensorProto.FLOAT, ["N", 2])])
    model.graph.node.extend(nodes[1:])
    plain = plain_of(model)
    assert {node.domain for node in plain.graph.node} == {""}
    assert "Cast" not in {node.op_type for node in plain.graph.node}
    a, b = np.array([[1.0], [np.nan]], np.float32), np.array([[np.nan], [3.0]], np.float32)
    expected = 2 * (np.array([[1, 2], [1, 3]]) / [[3], [4]] - 0.5)
    np.testing.assert_allclose(run_onnx(plain, a, b)[0], expected, rtol=1e-6)
