"""A trained ONNX model has the interface of the original, so serving programs need no change."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, scale
from sklearn.svm import SVC, SVR

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays
from ortlearn.runtime.readable_versions import newest_opset
from tests.pairwise import pairwise

X, CLASSES = load_iris(return_X_y=True)
X = scale(X).astype(np.float32)
NAMES = np.array(["setosa", "versicolor", "virginica"])[CLASSES]
LABELS = np.stack([CLASSES > 0, CLASSES > 1, X[:, 0] > 0], axis=1).astype(int)
AMOUNTS = 2 * X[:, 0] + 1
OPSETS = {"": 18, "ai.onnx.ml": 3}
STILL = {"warm_start": True, "max_iter": 1, "learning_rate": 1e-30}
MOVING = {"warm_start": True, "max_iter": 3, "learning_rate": 0.01, "random_state": 0}


def open_session(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def serving_program(file):
    """Return a function that runs models, and checks that their interface equals that of a file."""
    session = open_session(file)
    outputs = [(value.name, value.type) for value in session.get_outputs()]
    inputs = [(value.name, value.type) for value in session.get_inputs()]

    def serve(model, feeds):
        deployed = open_session(model)
        assert [(value.name, value.type) for value in deployed.get_outputs()] == outputs
        assert [(value.name, value.type) for value in deployed.get_inputs()] == inputs
        found = deployed.run([name for name, _ in outputs], feeds)
        return {name: value for (name, _), value in zip(outputs, found, strict=True)}

    return serve


def structure(value):
    """Return types, keys and shape of an output."""
    if isinstance(value, list):
        return [{(key, type(key), type(number)) for key, number in row.items()} for row in value]
    return value.dtype, value.shape


def numbers(value):
    return np.array([list(row.values()) for row in value]) if isinstance(value, list) else value


def assert_drop_in(file, feeds, X, y, kind=OrtGradientOptimizer, **options):
    """Check that a trained model has the interface of a file and can be trained; return its outputs."""
    serve, before = serving_program(file), file.SerializeToString()
    old = serve(file, feeds)
    still = kind(file, **STILL, **options).fit(X, y)
    same = serve(still.get_trained_onnx(), feeds)
    for name, value in old.items():
        assert structure(same[name]) == structure(value)
        if numbers(value).dtype.kind == "f":
            np.testing.assert_allclose(numbers(same[name]), numbers(value), rtol=1e-3, atol=1e-4)
        else:
            np.testing.assert_array_equal(same[name], value)
    first = kind(file, **MOVING, **options).fit(X, y).get_trained_onnx()
    again = kind(first, **MOVING, **options).fit(X, y)
    for model in (first, again.onnx_):
        onnx.checker.check_model(model)
        assert list(model.graph.input) == list(file.graph.input)
        assert list(model.graph.output) == list(file.graph.output)
        assert {item.domain for item in model.opset_import} == {item.domain for item in file.opset_import}
        assert model.producer_name == file.producer_name and model.graph.name == file.graph.name
    assert list(again.trained_coef_) == list(still.trained_coef_)
    assert file.SerializeToString() == before
    found = serve(first, feeds)
    assert {name: structure(value) for name, value in found.items()} == {
        name: structure(value) for name, value in old.items()
    }
    return found


CLASSIFIERS = {
    "linear": LogisticRegression(),
    "network": MLPClassifier((5,), max_iter=2000, random_state=0),
    "svm": SVC(probability=True, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pairwise(name=CLASSIFIERS, labels=["numbers", "texts"], zipmap=[True, False, "columns"])
def test_classifiers_of_skl2onnx(name, labels, zipmap):
    y = CLASSES if labels == "numbers" else NAMES
    model = CLASSIFIERS[name].fit(X, y)
    file = to_onnx(model, X[:1], options={"zipmap": zipmap}, target_opset=OPSETS)
    found = assert_drop_in(file, {"X": X}, X, y)
    if zipmap is True:
        assert list(found["output_probability"][0]) == list(model.classes_)


def test_both_estimators(optimizer):
    file = to_onnx(LogisticRegression().fit(X, NAMES), X[:1], target_opset=OPSETS)
    found = assert_drop_in(file, {"X": X}, X, NAMES, optimizer)
    trained = optimizer(file, **MOVING).fit(X, NAMES)
    assert list(trained.predict(X)) == list(found["output_label"])
    np.testing.assert_allclose(trained.predict_proba(X), numbers(found["output_probability"]), atol=1e-6)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model", [Ridge(), MLPRegressor(hidden_layer_sizes=5, max_iter=4000, random_state=0)], ids=str
)
def test_regressors_of_skl2onnx(model, dtype):
    samples = X.astype(dtype)
    file = to_onnx(model.fit(samples, AMOUNTS), samples[:1], target_opset=OPSETS)
    assert_drop_in(file, {"X": samples}, samples, AMOUNTS)


@pytest.mark.parametrize("model", [SVR(), RandomForestRegressor(3, random_state=0)], ids=str)
def test_decomposed_regressors(model):
    assert_drop_in(to_onnx(model.fit(X, AMOUNTS), X[:1], target_opset=OPSETS), {"X": X}, X, AMOUNTS)


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        MLPClassifier((5,), max_iter=4000, random_state=0),
        RidgeClassifier(),
    ],
)
def test_multilabel(model):
    options = {"zipmap": False} if hasattr(model, "predict_proba") else None
    file = to_onnx(model.fit(X, LABELS), X[:1], options=options, target_opset=OPSETS)
    assert_drop_in(file, {"X": X}, X, LABELS)


def test_several_named_inputs():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "width": X[:, 1], "kind": np.where(X[:, 2] > 0, "a", "b")})
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["kind"]), (StandardScaler(), ["size", "width"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame, NAMES)
    types = [
        ("size", FloatTensorType([None, 1])),
        ("width", FloatTensorType([None, 1])),
        ("kind", StringTensorType([None, 1])),
    ]
    file = to_onnx(model, initial_types=types, target_opset=OPSETS)
    feeds = {name: frame[[name]].to_numpy() for name in ("size", "width", "kind")}
    assert_drop_in(file, feeds, frame, NAMES)


@pytest.mark.parametrize("ml", [1, 3])
@pytest.mark.parametrize("opset", [9, 12, 15, 21])
def test_old_opsets(opset, ml):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, NAMES)
    file = to_onnx(model, X[:1], target_opset={"": opset, "ai.onnx.ml": ml})
    assert_drop_in(file, {"X": X}, X, NAMES)


# -- files of other tools ------------------------------------------------------------------------------


def network(opset=17, ir_version=8, optional=False, doubles=False):
    """Return a network as exported by torch: Gemm with transposed weights, named dimensions, metadata."""
    rng, kind = np.random.RandomState(0), np.float64 if doubles else np.float32
    shapes = {"fc1.weight": (6, 4), "fc1.bias": (6,), "fc2.weight": (3, 6), "fc2.bias": (3,)}
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    weights = [
        numpy_helper.from_array(rng.normal(0, 0.5, shape).astype(kind), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("Gemm", ["features", "fc1.weight", "fc1.bias"], ["/fc1/out"], "/fc1", transB=1),
        helper.make_node("Relu", ["/fc1/out"], ["hidden"], "/relu"),
        helper.make_node("Gemm", ["hidden", "fc2.weight", "fc2.bias"], ["logits"], "/fc2", transB=1),
        helper.make_node("Softmax", ["logits"], ["scores"], "/softmax", axis=1),
    ]
    inputs = [helper.make_tensor_value_info("features", elem_type, ["batch_size", 4])]
    if optional:
        inputs += [helper.make_tensor_value_info(name, elem_type, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("scores", elem_type, ["batch_size", 3])]
    graph = helper.make_graph(nodes, "main_graph", inputs, outputs, weights, doc_string="a network")
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, producer_name="pytorch")
    model.doc_string, model.model_version = "of the shop", 7
    helper.set_model_props(model, {"author": "us", "ortlearn.epoch": "3"})
    return model


@pytest.mark.parametrize("doubles", [False, True])
@pytest.mark.parametrize("opset, ir_version, optional", [(17, 8, False), (17, 8, True), (9, 3, True)])
def test_only_weights_of_the_file_change(opset, ir_version, optional, doubles):
    file = network(opset, ir_version, optional, doubles)
    samples = X.astype(np.float64 if doubles else np.float32)
    assert_drop_in(file, {"features": samples}, samples, CLASSES, learning_loss="log_loss")
    trained = OrtGradientOptimizer(file, learning_loss="log_loss", **MOVING).fit(samples, CLASSES)
    model = trained.get_trained_onnx()
    new, old = initializer_arrays(model), initializer_arrays(file)
    assert new.keys() == old.keys() and all((new[name] != old[name]).any() for name in new)
    del model.graph.initializer[:], file.graph.initializer[:]
    file.metadata_props.pop()
    assert model == file  # nodes, names, versions, and metadata except those of checkpoints


def with_outputs(file, *outputs):
    """Return a file with other outputs: their names, types and shapes."""
    del file.graph.output[:]
    file.graph.output.extend(helper.make_tensor_value_info(*output) for output in outputs)
    return file


FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def with_labels(file):
    """Return a network with a label output."""
    table = helper.make_tensor("names", STRING, [3], [b"virginica", b"versicolor", b"setosa"])
    file.graph.initializer.append(table)
    file.graph.node.extend(
        [
            helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
            helper.make_node("Gather", ["names", "best"], ["flower"], axis=0),
        ]
    )
    return file


@pytest.mark.parametrize(
    "outputs",
    [
        [("scores", FLOAT, ["batch_size", 3]), ("flower", STRING, ["batch_size"])],
        [("logits", FLOAT, ["b", 3]), ("flower", STRING, ["b"]), ("scores", FLOAT, ["b", 3])],
        [("hidden", FLOAT, ["b", 6]), ("scores", FLOAT, ["b", 3]), ("flower", STRING, ["b"])],
        [
            ("names", STRING, [3]),
            ("fc2.bias", FLOAT, [3]),
            ("flower", STRING, ["b"]),
            ("scores", FLOAT, [1, 3]),
        ],
    ],
    ids=["order", "raw scores", "intermediate", "constants"],
)
def test_unusual_outputs_of_a_classifier(outputs):
    file = with_outputs(with_labels(network()), *outputs)
    names = [name for name, *_ in outputs]
    found = assert_drop_in(file, {"features": X}, X, NAMES)
    assert list(found) == names
    trained = OrtGradientOptimizer(file, **MOVING).fit(X, NAMES)
    assert list(trained.predict(X)) == list(found["flower"])
    np.testing.assert_allclose(trained.predict_proba(X), found["scores"], atol=1e-6)
    assert trained.classes_.tolist() == ["virginica", "versicolor", "setosa"]


def test_inputs_returned_as_outputs():
    file = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,4] x, int64[N,1] id) => (int64[N,1] same, float[N,1] y) <float[4,1] w = {1, 2, 3, 4}>
        { same = Identity (id) y = MatMul (x, w) }"""
    )
    feeds = {"x": X, "id": np.arange(len(X)).reshape(-1, 1)}
    found = assert_drop_in(file, feeds, feeds, AMOUNTS)
    assert OrtGradientOptimizer(file).__sklearn_tags__().estimator_type == "regressor"
    np.testing.assert_array_equal(found["same"], feeds["id"])


def test_probabilities_as_matrix_and_as_maps():
    file = to_onnx(LogisticRegression().fit(X, CLASSES), X[:1], target_opset=OPSETS)
    file.graph.output.append(helper.make_tensor_value_info("probabilities", FLOAT, [None, 3]))
    found = assert_drop_in(file, {"X": X}, X, CLASSES)
    np.testing.assert_allclose(numbers(found["output_probability"]), found["probabilities"])


def test_ambiguous_scores_are_rejected():
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[N,4] x) => (int64[N] label, float[N,2] a, float[N,2] b)
        <float[4,2] v = {1, 2, 3, 4, 5, 6, 7, 8}, float[4,2] w = {8, 7, 6, 5, 4, 3, 2, 1}>
        { a = MatMul (x, v) b = MatMul (x, w) label = ArgMax <axis = 1, keepdims = 0> (a) }"""
    with pytest.raises(
        ConversionError, match=r"several floating-point outputs, \['a', 'b'\], .*: choose one by output_name"
    ):
        OrtGradientOptimizer(parser.parse_model(text)).fit(X, CLASSES > 0)


def test_link_without_counterpart_in_the_file():
    file = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[batch,4] x) => (float[batch,1] y) <float[4,1] w = {0.1, 0.2, 0.3, 0.4}>
        { y = MatMul (x, w) }"""
    )
    trained = OrtGradientOptimizer(file, learning_loss="poisson", **MOVING).fit(X, np.exp(X[:, 0]))
    found = serving_program(file)(trained.get_trained_onnx(), {"x": X})
    assert trained.onnx_.graph.output == file.graph.output and trained.onnx_.graph.input == file.graph.input
    np.testing.assert_allclose(found["y"].ravel(), trained.predict(X), rtol=1e-6)
    assert found["y"].min() > 0


def test_newer_versions_than_are_supported():
    file = network(opset=22, ir_version=11)
    trained = OrtGradientOptimizer(file, learning_loss="log_loss", **MOVING).fit(X, CLASSES)
    given = trained.get_trained_onnx()
    assert given.opset_import[0].version == 22 and given.ir_version == 11
    model = trained.get_trained_onnx(keep_upgrade=True)
    own = newest_opset() >= 22  # whether the installed onnxruntime runs the file
    assert model.opset_import[0].version == (22 if own else 21)
    assert model.ir_version == (11 if own else 10)
    for result in (given, model):
        assert result.graph.input == file.graph.input and result.graph.output == file.graph.output
    np.testing.assert_allclose(
        open_session(model).run(None, {"features": X})[0], trained.predict_proba(X), atol=1e-6
    )


# -- scikit-learn models -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("y", [CLASSES, NAMES, CLASSES > 0], ids=["numbers", "texts", "booleans"])
def test_zipmap_of_a_scikit_learn_model(y, dtype):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    kind = {"float32": FloatTensorType, "float64": DoubleTensorType}[dtype]
    reference = to_onnx(model, initial_types=[("X", kind([None, 4]))], target_opset=OPSETS)
    trained = OrtGradientOptimizer(model, dtype=dtype, **MOVING).fit(X, y)
    plain = [value.name for value in trained.get_trained_onnx().graph.output]
    zipped = trained.get_trained_onnx(zipmap=True)
    onnx.checker.check_model(zipped)
    assert [value.name for value in trained.onnx_.graph.output] == plain == ["label", "probabilities"]
    for made, expected in zip(zipped.graph.output, reference.graph.output, strict=True):
        assert made.name == expected.name
        if dtype == "float32":
            assert made.type.WhichOneof("value") == expected.type.WhichOneof("value")
            assert made.type.sequence_type == expected.type.sequence_type
    label, maps = open_session(zipped).run(None, {"X": X.astype(dtype)})
    assert list(label) == list(trained.predict(X))
    assert list(maps[0]) == list(trained.classes_)
    np.testing.assert_allclose(numbers(maps), trained.predict_proba(X), atol=1e-6)
    again = OrtGradientOptimizer(zipped, **STILL).fit(X, y)
    assert again.onnx_.graph.output == zipped.graph.output


@pytest.mark.parametrize(
    "model, y", [(Ridge(), AMOUNTS), (RidgeClassifier(), CLASSES), (StandardScaler(), X)], ids=str
)
def test_zipmap_needs_probabilities(model, y):
    trained = OrtGradientOptimizer(clone(model).fit(X, y), **STILL).fit(X, y)
    with pytest.raises(ValueError, match=f"{type(model).__name__} is not: set zipmap=False"):
        trained.get_trained_onnx(zipmap=True)


def test_zipmap_is_rejected_for_files():
    file = to_onnx(LogisticRegression().fit(X, CLASSES), X[:1], target_opset=OPSETS)
    with pytest.raises(ValueError, match="keeps its own outputs"):
        OrtGradientOptimizer(file, **STILL).fit(X, CLASSES).get_trained_onnx(zipmap=True)
