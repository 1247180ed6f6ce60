"""``replace_head``: the model up to a tensor, with a new linear output layer."""

import json

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from skl2onnx import to_onnx
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.graphs import initializer_arrays
from ortlearn.onnx_files import LoRA, replace_head
from ortlearn.onnx_files.heads import TRAINED
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.explanation import explain
from tests.estimators.network_files import network_file


def run(model, X):
    session = make_session(model, Device("cpu"))
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, {"x": X}), strict=True))


def data(dtype=np.float32, n=60):
    X = np.random.default_rng(3).normal(size=(n, 24)).astype(dtype)
    return X, np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])


def with_head(model, weight, bias):
    """Return a copy of a model with other weights in its head."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for tensor in result.graph.initializer:
        if tensor.name.startswith("head."):
            array = weight if tensor.name.endswith("weight") else bias
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return result


#: File, tensor, arguments, and the input of the linear layer as a function of the tensor.
CUTS = {
    "hidden layer": ("perceptron", "r", {}, lambda t: t),
    "mean of channels": ("convolution", "t", {"pooling": "mean"}, lambda t: t.mean(axis=(2, 3))),
    "maximum": ("convolution", "t", {"pooling": "max"}, lambda t: t.max(axis=(2, 3))),
    "all pixels": ("convolution", "t", {"pooling": "flatten"}, lambda t: t.reshape(len(t), -1)),
    "mean of steps": ("transformer", "l", {"pooling": "mean", "axis": -1}, lambda t: t.mean(axis=1)),
}


@pytest.mark.parametrize("opset", [9, 12, 17, 18, 21])
@pytest.mark.parametrize("case", CUTS)
def test_outputs_of_a_new_head(case, opset):
    """Compare with NumPy's softmax of a linear layer, on the tensor computed by the original file."""
    name, at, options, features = CUTS[case]
    file = network_file(name, opset=17 if name == "transformer" and opset < 17 else opset)
    new = replace_head(file, at, 3, **options)
    onnx.checker.check_model(new, full_check=True)
    assert new.opset_import == file.opset_import and new.graph.input == file.graph.input
    X, _ = data()
    file.graph.output.append(helper.make_empty_tensor_value_info(at))
    known = features(run(file, X)[at])
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(known.shape[1], 3)).astype(np.float32)
    bias = rng.normal(size=3).astype(np.float32)
    found = run(with_head(new, weight, bias), X)
    exponents = np.exp(known @ weight + bias)
    expected = exponents / exponents.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-4, atol=1e-6)
    assert (found["label"] == expected.argmax(axis=1)).all()
    read = {name for node in new.graph.node for name in node.input}
    assert {tensor.name for tensor in new.graph.initializer} <= read  # unused initializers are removed


def test_output_at_every_step():
    new = replace_head(network_file("transformer"), "l", 3, axis=-1)
    X, _ = data()
    found = run(new, X)
    assert found["probabilities"].shape == (60, 6, 3) and found["label"].shape == (60, 6)
    assert initializer_arrays(new)["head.weight"].shape == (4, 3)


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_only_the_head_is_trained(kind):
    file, (X, y) = network_file("transformer"), data(n=300)
    new = replace_head(file, "f", 3)
    trainer = kind(new, random_state=0, max_iter=60, learning_rate=0.1).fit(X, np.array(["a", "b", "c"])[y])
    assert set(trainer.get_weights()) == {"head.weight", "head.bias"}
    assert trainer.score(X, np.array(["a", "b", "c"])[y]) > 0.6 > 1.2 * np.bincount(y).max() / len(y)
    original, found = initializer_arrays(file), initializer_arrays(trainer.get_trained_onnx())
    assert all(array.tobytes() == original[n].tobytes() for n, array in found.items() if n in original)
    assert [node.op_type for node in trainer.get_trained_onnx().graph.node] == [
        n.op_type for n in new.graph.node
    ]


def test_body_weights_are_selected_by_patterns():
    new = replace_head(network_file("transformer"), "f", 3)
    assert list(to_trainable(new).origins()) == ["head.weight", "head.bias"]
    assert set(to_trainable(new, ["head", "*query*"]).origins()) == {"head.weight", "head.bias", "wq"}
    both = to_trainable(new, lora=LoRA(1, target="*query*"))
    assert set(both.origins()) == {"head.weight", "head.bias", "wq.lora_A", "wq.lora_B"}
    reasons = {name: row.reason for row in explain(new).rows if not row.trainable for name in row.weights}
    assert "its head is trained" in reasons["wq"] and "head.weight" not in reasons


def test_second_head():
    """The second head has another name, and only it is trained."""
    first = replace_head(network_file("perceptron"), "r", 4)
    second = replace_head(first, first.graph.node[-3].output[0], 2)
    assert list(to_trainable(second).origins()) == ["head_2.weight", "head_2.bias"]
    assert run(second, data()[0])["probabilities"].shape == (60, 2)


@pytest.mark.parametrize("classes", [["no", "yes", "maybe"], [7, -1, 30]])
def test_classes(classes):
    X, y = data()
    new = replace_head(network_file("perceptron"), "r", classes=classes)
    labels = np.array(classes)[y]
    trainer = OrtGradientOptimizer(new, random_state=0, max_iter=5).fit(X, labels)
    assert trainer.classes_.tolist() == classes
    assert (run(trainer.get_trained_onnx(), X)["label"] == trainer.predict(X)).all()


def test_regression():
    X, _ = data(n=200)
    new = replace_head(network_file("perceptron"), "r", 1, task="regression")
    y = run(network_file("perceptron"), X)["y"][:, 0]
    trainer = OrtGradientOptimizer(new, random_state=0, max_iter=300, learning_rate="LBFGS").fit(X, y)
    assert trainer.score(X, y) > 0.999  # the original last layer is linear too
    assert [value.name for value in trainer.get_trained_onnx().graph.output] == ["prediction"]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_dtype_of_the_file(dtype):
    new = replace_head(network_file("perceptron", dtype), "r", 3)
    assert initializer_arrays(new)["head.weight"].dtype == dtype
    X, y = data()
    trainer = OrtGradientOptimizer(new, random_state=0, max_iter=2).fit(X.astype(dtype), y)
    assert initializer_arrays(trainer.get_trained_onnx())["head.bias"].dtype == dtype


def test_unused_inputs_are_removed():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[N,2] z) => (float[N,2] y, float[N,2] q)
        { h = Tanh (x) y = Add (h, z) q = Neg (z) }""")
    new = replace_head(model, "h", 2)
    assert [value.name for value in new.graph.input] == ["x"] and len(new.graph.node) == 4


def test_head_of_one_class():
    with pytest.raises(ValueError, match=r"classes=\['a'\] must have two or more entries"):
        replace_head(network_file("perceptron"), "r", classes=["a"])


@pytest.mark.parametrize(
    "name, arguments, error, message",
    [
        (
            "perceptron",
            ("h", 3),
            ConversionError,
            r"at='h' is not a tensor of the main graph.*did you mean|last tensors",
        ),
        ("perceptron", ("w1", 3), ConversionError, "at='w1' is not a tensor"),
        ("convolution", ("t", 3), ConversionError, r"at several positions: pool them with pooling='mean'"),
        ("perceptron", ("r", 1), ValueError, "n_outputs=1 must be an integer, 2 or more"),
        ("perceptron", ("r", None), ValueError, "n_outputs is missing: pass .* or the list of classes"),
        ("perceptron", ("r", 2.0), ValueError, "n_outputs=2.0 must be an integer"),
    ],
)
def test_invalid_tensors_and_n_outputs(name, arguments, error, message):
    with pytest.raises(error, match=message):
        replace_head(network_file(name), *arguments)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"classes": [1, 1]}, "unique integers"),
        ({"classes": [0.5, 1.5]}, "unique integers"),
        ({"classes": [True, False]}, "unique integers"),
        ({"classes": ["a", 1, "c"]}, "unique integers or unique strings"),
        ({"classes": np.array(["a", 1], dtype=object)}, "unique integers or unique strings"),
        ({"classes": ["a", "b"], "n_outputs": 3}, "must be the number of classes, 2"),
        ({"classes": ["a", "b"], "task": "regression"}, "classes require task='classification'"),
        ({"n_outputs": 2, "task": "ranking"}, "task='ranking' must be"),
        ({"n_outputs": 2, "pooling": "median"}, "pooling='median' must be"),
        ({"n_outputs": 2, "axis": 2}, "axis=2 must be an axis of 'r'"),
        ({"n_outputs": 2, "axis": 0}, "axis=0 must be an axis of 'r'"),
    ],
)
def test_invalid_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        replace_head(network_file("perceptron"), "r", **options)


def test_tensors_that_are_not_features():
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,2] x, float[A,B] z) => (int64[N] label, float[N] s, float[A,B] t)
        { label = ArgMax <axis = 1, keepdims = 0> (x) s = ReduceSum <keepdims = 0> (x, one) t = Tanh (z) }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "one"))
    with pytest.raises(ConversionError, match="has the type int64 instead of floating-point features.*'t'"):
        replace_head(model, "label", 2)
    with pytest.raises(ConversionError, match="two or more dimensions, samples first"):
        replace_head(model, "s", 2)
    with pytest.raises(ConversionError, match="has an unknown number of features"):
        replace_head(model, "t", 2)


@pytest.mark.parametrize("text", ["{", "3", "[]", '["a", 1]'])
def test_invalid_metadata(text):
    model = replace_head(network_file("perceptron"), "r", 2)
    helper.set_model_props(model, {TRAINED: text})
    with pytest.raises(ConversionError, match="not a JSON list of names"):
        to_trainable(model)
    helper.set_model_props(model, {TRAINED: json.dumps(["gone"])})
    with pytest.raises(NoTrainableWeightError, match="'gone' matches no"):
        to_trainable(model)


def test_network_exported_by_skl2onnx():
    """onnx does not infer the shape of its Scaler."""
    X, y = data()
    known = make_pipeline(StandardScaler(), MLPClassifier((5,), solver="lbfgs", random_state=0))
    file = to_onnx(known.fit(X, y > 0), X[:1])
    (at,) = [node.output[0] for node in file.graph.node if node.op_type == "Relu"]
    names = np.where(y > 0, "high", "low")
    trained = OrtGradientOptimizer(replace_head(file, at, classes=["high", "low"]), random_state=0).fit(
        X, names
    )
    assert sorted(trained.get_weights()) == ["head.bias", "head.weight"] and trained.score(X, names) > 0.9
