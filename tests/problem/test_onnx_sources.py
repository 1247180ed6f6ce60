"""ONNX models as estimator: object, bytes or path, with or without loss."""

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier

from ortlearn.exceptions import ConversionError, PluginError
from ortlearn.graphs import initializer_arrays
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.losses import add_loss_output
from ortlearn.trainable.from_estimator import sklearn_to_onnx


@pytest.fixture(params=["ModelProto", "bytes", "str", "pathlib"])
def as_source(request, tmp_path):
    """Return a function that converts a model to an object, bytes or path."""

    def make(model):
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        return {
            "ModelProto": model,
            "bytes": model.SerializeToString(),
            "str": str(path),
            "pathlib": path,
        }[request.param]

    return make


def test_regressor(as_source, optimizer, diabetes, run_onnx):
    X, y = diabetes
    source = sklearn_to_onnx(LinearRegression().fit(X[:50], y[:50]), 10)
    before = source.SerializeToString()
    model = optimizer(as_source(source), learning_rate=0.01, warm_start=True, max_iter=10, random_state=0)
    assert is_regressor(model) and not is_classifier(model)
    start = LinearRegression().fit(X[:50], y[:50]).score(X, y)
    assert model.fit(X, y).score(X, y) > start
    assert source.SerializeToString() == before
    assert initializer_arrays(model.onnx_).keys() == initializer_arrays(source).keys()
    assert model.n_features_in_ == 10
    np.testing.assert_allclose(run_onnx(model.onnx_, X)["variable"].ravel(), model.predict(X), rtol=1e-6)


def test_classifier(as_source, optimizer, wine, fit_quietly, run_onnx):
    X, y = wine
    source = sklearn_to_onnx(fit_quietly(MLPClassifier((5,), max_iter=2, random_state=0), X, y), 13)
    model = optimizer(as_source(source), learning_rate=0.05, max_iter=20, random_state=0)
    assert is_classifier(model) and not is_regressor(model)
    assert model.fit(X, y).score(X, y) > 0.9
    assert model.classes_.tolist() == [0, 1, 2]
    assert initializer_arrays(model.onnx_).keys() == initializer_arrays(source).keys()
    outputs = run_onnx(model.onnx_, X)
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(X), atol=1e-6)


def test_clone_and_pickle_keep_the_model(optimizer, diabetes):
    X, y = diabetes
    source = sklearn_to_onnx(LinearRegression().fit(X, y), 10)
    model = clone(optimizer(source, max_iter=1, warm_start=True, learning_rate=1e-9))
    np.testing.assert_allclose(model.fit(X, y).predict(X), LinearRegression().fit(X, y).predict(X), rtol=1e-3)


def test_names_of_weights_are_kept(optimizer):
    source = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] data) => (float[N,1] value)
        <float[2,1] zebra = {1, 2}, float[1] apple = {3}>
        { z = MatMul (data, zebra) value = Add (z, apple) }""")
    X = np.random.RandomState(0).normal(size=(40, 2))
    y = X @ [4.0, 5.0] + 6
    model = optimizer(source, learning_rate=0.1, max_iter=30, warm_start=True, random_state=0).fit(X, y)
    assert model.weights_to_train_ == {"zebra": "", "apple": ""}
    assert list(initializer_arrays(model.onnx_)) == ["zebra", "apple"]
    assert [v.name for v in (*model.onnx_.graph.input, *model.onnx_.graph.output)] == ["data", "value"]
    np.testing.assert_allclose(model.trained_coef_["zebra"], [[4], [5]], atol=0.1)
    np.testing.assert_allclose(model.trained_coef_["apple"], [6], atol=0.1)


def test_model_with_loss(optimizer, diabetes_units, run_onnx):
    X, y = diabetes_units
    base = sklearn_to_onnx(LinearRegression().fit(X[:30], y[:30]), 10)
    source = add_loss_output(base, "squared_error")
    constant = LearningRateSGD(eta0=0.002, learning_rate="constant")
    options = {"learning_rate": constant, "max_iter": 5, "shuffle": False, "warm_start": True}
    model = optimizer(source, **options).fit(X[:40], y[:40])
    assert model.loss_ is None
    # the sum over a batch of ten of (f - y)^2 is twenty times the mean of its half
    rate = LearningRateSGD(eta0=0.04, learning_rate="constant")
    same = optimizer(base, **{**options, "learning_rate": rate}).fit(X[:40], y[:40])
    np.testing.assert_allclose(model.trained_coef_["coef"], same.trained_coef_["coef"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.losses(X, y), 2 * same.losses(X, y), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(model.train_losses_, 20 * np.array(same.train_losses_), rtol=1e-4)
    assert [value.name for value in model.onnx_.graph.output] == ["variable"]
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-4)


def test_loss_with_other_names(optimizer, diabetes_units):
    X, y = diabetes_units
    base = sklearn_to_onnx(LinearRegression().fit(X[:30], y[:30]), 10)
    source = add_loss_output(base, "absolute_error", loss_name="cost", label_name="truth")
    model = optimizer(source, loss_output_name="cost", label_name="truth", learning_rate=0.001, max_iter=10)
    model.set_params(random_state=0, warm_start=True).fit(X, y)
    np.testing.assert_allclose(model.losses(X, y), np.abs(model.predict(X) - y), atol=1e-5)
    assert model.train_losses_[-1] < model.train_losses_[0]


def test_graph_with_loss_rejects_another_loss(optimizer, diabetes_units):
    X, y = diabetes_units
    source = add_loss_output(sklearn_to_onnx(LinearRegression().fit(X, y), 10))
    with pytest.raises(PluginError, match="computes its own loss"):
        optimizer(source, learning_loss="squared_error").fit(X, y)
    with pytest.raises(ValueError, match="add one with add_loss_output"):
        optimizer(source).fit(X, y, sample_weight=np.ones(len(X)))


def test_classifier_with_loss_has_no_decision_function(optimizer, cancer):
    X, y = cancer
    base = sklearn_to_onnx(LogisticRegression().fit(X, y), 30)
    source = add_loss_output(base, "squared_error", label_name="truth", output_index="probabilities")
    labels = np.eye(2)[y]
    model = optimizer(source, label_name="truth", learning_rate=1e-3, max_iter=2, warm_start=True)
    model.fit(X, labels)
    with pytest.raises(ConversionError, match="computes its own loss"):
        model.decision_function(X)
    assert (model.predict(X) == y).mean() > 0.95


def test_float64_model(optimizer, diabetes):
    X, y = diabetes
    source = sklearn_to_onnx(LinearRegression().fit(X, y), 10, np.float64)
    model = optimizer(source, learning_rate=0.01, max_iter=3, random_state=0).fit(X, y)
    assert all(array.dtype == np.float64 for array in model.trained_coef_.values())
    assert model.predict(X).dtype == np.float64
    elem_type = model.onnx_.graph.input[0].type.tensor_type.elem_type
    assert helper.tensor_dtype_to_np_dtype(elem_type) == np.float64


@pytest.mark.parametrize("scores", ["float", "double"])
def test_weights_of_two_types(optimizer, scores, diabetes, run_onnx):
    X, y = diabetes[0].astype(np.float32), diabetes[1]
    file = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N,10] X) => ({scores}[N,1] Y)
        <float[10,1] w = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, double[1] b = {{0}}>
        {{ m = MatMul (X, w) d = Cast <to = 11> (m) s = Add (d, b) Y = Cast (s) }}""")
    kind = file.graph.output[0].type.tensor_type.elem_type
    file.graph.node[-1].attribute.append(helper.make_attribute("to", kind))
    model = optimizer(file, learning_rate=0.01, max_iter=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.48
    arrays = initializer_arrays(model.onnx_)
    assert {name: array.dtype.name for name, array in arrays.items()} == {"w": "float32", "b": "float64"}
    np.testing.assert_allclose(run_onnx(model.onnx_, X)["Y"].ravel(), model.predict(X), rtol=1e-6)
