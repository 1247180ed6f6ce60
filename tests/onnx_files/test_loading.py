"""ONNX models are loaded from objects, bytes and files of any version, and converted to a supported one."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, parser
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays, set_initializers
from ortlearn.onnx_files.loading import is_onnx_source, load_onnx
from ortlearn.onnx_files.versions import pin_versions
from ortlearn.runtime.readable_versions import newest_ir_version
from ortlearn.trainable.conversion import source_task, to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx

X = np.array([[1, 2], [3, 4]], dtype=np.float32)
TEXT = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {3}>
{ z = MatMul (x, w)  y = Add (z, b) }"""


def linear(ir_version=8, opset=18):
    model = parser.parse_model(TEXT)
    model.ir_version = ir_version
    model.opset_import[0].version = opset
    return model


def expected(X=X):
    return X @ np.array([[1], [2]], dtype=X.dtype) + 3


def sources(folder):
    model = linear()
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    content = model.SerializeToString()
    return {"proto": model, "bytes": content, "bytearray": bytearray(content), "path": path, "str": str(path)}


@pytest.mark.parametrize("kind", ["proto", "bytes", "bytearray", "path", "str"])
def test_sources(tmp_path, run_onnx, kind):
    source = sources(tmp_path)[kind]
    assert is_onnx_source(source)
    model = load_onnx(source)
    assert model is not source
    np.testing.assert_allclose(run_onnx(model, X)[0], expected())
    assert to_trainable(source).trained == ["I0_w", "I1_b"]


def test_trees_that_import_no_standard_domain(run_onnx):
    tree = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "shares"],
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[1, 0, 0],
        nodes_values=[3.0, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0, 0, 0],
        class_nodeids=[1, 1, 2, 2],
        class_ids=[0, 1, 0, 1],
        class_weights=[1.0, -1.0, -0.5, 0.5],
        classlabels_int64s=[0, 1],
        post_transform="LOGISTIC",
    )
    zipped = helper.make_node("ZipMap", ["shares"], ["p"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])
    label = helper.make_tensor_value_info("label", TensorProto.INT64, [None])
    values = [label, onnx.ValueInfoProto(name="p")]
    item = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    shares = helper.make_map_type_proto(TensorProto.INT64, item)
    values[1].type.CopyFrom(helper.make_sequence_type_proto(shares))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])]
    graph = helper.make_graph([tree, zipped], "trees", inputs, values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 2)], ir_version=3)
    trained = OrtGradientOptimizer(model, max_iter=5, learning_rate=0.1, random_state=0).fit(X, [0, 1])
    assert trained.predict_proba(X)[1, 1] > trained.predict_proba(X)[0, 1]
    found = run_onnx(trained.get_trained_onnx(), X)
    np.testing.assert_array_equal(found[0], [0, 1])


def test_input_model_is_not_changed():
    model = linear(ir_version=13, opset=22)
    before = model.SerializeToString()
    load_onnx(model)
    assert model.SerializeToString() == before


def test_weights_in_separate_files(tmp_path, run_onnx):
    path = tmp_path / "big.onnx"
    model = set_initializers(linear(), initializer_arrays(linear()))  # as raw bytes
    onnx.save_model(model, path, save_as_external_data=True, location="big.data", size_threshold=0)
    np.testing.assert_allclose(run_onnx(load_onnx(path), X)[0], expected())
    (tmp_path / "big.data").unlink()
    with pytest.raises(ConversionError, match=r"big.onnx.* lack the file of some weights"):
        load_onnx(path)


@pytest.mark.parametrize("name", ["missing.onnx", "", "a\0b"])
def test_files_that_cannot_be_read(tmp_path, name):
    for source in (tmp_path / name, str(tmp_path / name)):
        with pytest.raises(ConversionError, match=r"^The ONNX file .* cannot be read: [^:]+\.$"):
            load_onnx(source)


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(range(256)), linear().SerializeToString()[:40]])
def test_bytes_that_are_not_a_model(tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ConversionError, match="The bytes given are not an ONNX model"):
        load_onnx(content)
    with pytest.raises(ConversionError, match=r"broken.onnx' are not an ONNX model"):
        to_trainable(path)
    assert source_task(path) is None


def test_graphs_without_nodes_or_outputs():
    empty = onnx.ModelProto()
    without_output = linear()
    del without_output.graph.output[:]
    without_node = linear()
    del without_node.graph.node[:]
    for model in (empty, without_output, without_node):
        with pytest.raises(ConversionError, match="no node or no output"):
            load_onnx(model)


def test_invalid_graph():
    model = linear()
    model.graph.node[0].input[1] = "nowhere"
    with pytest.raises(ConversionError, match="not a valid ONNX model.*nowhere"):
        load_onnx(model)


@pytest.mark.parametrize("version, pinned", [(4, 4), (8, 8), (10, 10), (11, 11), (13, 13), (99, 99), (0, 10)])
def test_ir_versions(version, pinned):
    model = linear()
    model.ir_version = version
    assert pin_versions(model).ir_version == min(pinned, newest_ir_version())


@pytest.mark.parametrize("ir_version, opset", [(3, 8), (3, 13), (8, 18)])
def test_initializers_that_are_inputs_too(run_onnx, ir_version, opset):
    model = linear(ir_version, opset)
    model.graph.input.extend(
        helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.dims)
        for tensor in model.graph.initializer
    )
    loaded = load_onnx(model)
    checker.check_model(loaded, full_check=True)
    assert [value.name for value in loaded.graph.input] == ["x"]
    np.testing.assert_allclose(run_onnx(loaded, X)[0], expected())
    trainable = to_trainable(model)
    assert trainable.trained == ["I0_w", "I1_b"]
    assert [value.name for value in trainable.score_graph().graph.input] == ["x", "I0_w", "I1_b"]


def test_domain_declared_twice():
    model = linear()
    model.opset_import.append(helper.make_opsetid("ai.onnx", 18))
    assert [(i.domain, i.version) for i in pin_versions(model).opset_import] == [("", 18)]


def test_float64_model(run_onnx):
    model = parser.parse_model(TEXT.replace("float[", "double["))
    trainable = to_trainable(model)
    assert trainable.input_dtype == trainable.scores.dtype == np.float64
    assert {array.dtype for array in trainable.initial_weights().values()} == {np.dtype(np.float64)}
    weights = {"I0_w": np.ones((2, 1)), "I1_b": np.zeros(1)}
    X64 = X.astype(np.float64) + 1e-10
    np.testing.assert_array_equal(run_onnx(trainable.with_weights(weights), X64)[0], X64.sum(1)[:, None])


def test_source_task(tmp_path, diabetes):
    assert source_task(linear()) == "regression"
    classifier = linear()
    classifier.graph.output.append(helper.make_tensor_value_info("label", TensorProto.INT64, ["N"]))
    assert source_task(classifier) == "classification"
    assert source_task(tmp_path / "missing.onnx") is None
    assert not is_onnx_source(Ridge()) and not is_onnx_source(None)
    converted = sklearn_to_onnx(Ridge().fit(diabetes.X_train, diabetes.y_train), 10)
    assert source_task(converted.SerializeToString()) == "regression"


def test_one_dimensional_output_is_one_column():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,2] x) => (float[N] y)
        <float[2,1] w = {1, 2}, int64[1] column = {-1}> { z = MatMul (x, w) y = Reshape (z, column) }"""
    )
    scores = to_trainable(model).scores
    assert (scores.task, scores.n_outputs) == ("regression", 1)


def test_unknown_number_of_outputs_is_rejected():
    nodes = [helper.make_node("Mul", ["x", "s"], ["y"])]
    infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "K"])] for name in "xy"]
    scale = numpy_helper.from_array(np.ones(1, np.float32), "s")
    model = helper.make_model(
        helper.make_graph(nodes, "g", *infos, [scale]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    with pytest.raises(ConversionError, match=r"training requires \(n, k\), k known"):
        to_trainable(model)


def test_graph_with_a_loss(run_onnx):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[N,1] label) => (float loss, float[N,1] y) <float[2,1] w = {1, 2}>
        { y = MatMul (x, w)  d = Sub (y, label)  s = Mul (d, d)  loss = ReduceMean <keepdims = 0> (s) }"""
    )
    trainable = to_trainable(model)
    assert (trainable.own_loss.output, trainable.own_loss.label, trainable.scores) == ("loss", "label", None)
    assert [value.name for value in trainable.score_graph().graph.input] == ["x", "label", "I0_w"]
    ready = trainable.with_weights({"I0_w": np.ones((2, 1), np.float32)})
    assert [value.name for value in ready.graph.input] == ["x"]
    np.testing.assert_allclose(run_onnx(ready, X)[0], X.sum(axis=1, keepdims=True))
    other = to_trainable(model, loss_output_name="y", label_name="label")
    assert other.own_loss.output == "y"
