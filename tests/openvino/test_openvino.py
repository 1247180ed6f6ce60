"""Trainings by OpenVINO, built into onnxruntime or as a plugin, equal those of the CPU."""

import numpy as np
import onnx
import pytest
from onnx import parser
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge, SGDRegressor
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import DeviceError, ProviderWarning
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.runtime.devices import parse_device
from ortlearn.trainable.explanation import explain

pytestmark = pytest.mark.openvino
PROVIDER = "OpenVINOExecutionProvider"


@pytest.fixture(scope="module", autouse=True)
def device():
    """Return the device, or skip the tests with the message of its error."""
    try:
        return parse_device("openvino")
    except DeviceError as error:
        pytest.skip(str(error))


def convolution():
    """Return a small convolutional network as an ONNX model."""
    rng = np.random.default_rng(0)
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,1,8,8] x) => (float[N,1] y) {
           c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w, b)
           r = Relu (c) p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
           f = Flatten (p) y = MatMul (f, v) }"""
    )
    arrays = {"w": rng.normal(size=(4, 1, 3, 3)), "b": np.zeros(4), "v": rng.normal(size=(64, 1))}
    for name, array in arrays.items():
        tensor = onnx.numpy_helper.from_array(array.astype(np.float32) / 3, name)
        model.graph.initializer.append(tensor)
    return model


X, Y = (a.astype(np.float32) for a in make_regression(507, 10, noise=1.0, random_state=0))
C_X, C = make_classification(507, 10, n_informative=6, n_classes=3, random_state=0)
IMAGES = np.random.default_rng(1).normal(size=(203, 1, 8, 8)).astype(np.float32)
CASES = {
    "linear": (SGDRegressor(), X, Y / 100, "SGD"),
    "all samples": (Ridge(), X, Y / 100, "LBFGS"),
    "classifier": (make_pipeline(StandardScaler(), LogisticRegression()), C_X, C, "Nesterov"),
    "network": (MLPRegressor(hidden_layer_sizes=(20, 5)), X, Y / 100, "Adam"),
    "classifying network": (MLPClassifier(hidden_layer_sizes=(8,)), C_X, C, "Adam"),
    "leaves": (GradientBoostingRegressor(n_estimators=5), X, Y / 100, "Adam"),
    "convolution": (convolution(), IMAGES, IMAGES[:, 0, 2:4, 2:4].sum((1, 2)), "Adam"),
    "mixture": (GaussianMixture(2, random_state=0), X, None, "Adam"),
}


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.ProviderWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("trainer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("name", CASES)
def test_weights_equal_those_of_the_cpu(name, trainer):
    model, samples, labels, rate = CASES[name]
    options = {
        "learning_rate": rate,
        "max_iter": 4,
        "batch_size": 10,
        "keep_better": False,
        "random_state": 0,
    }
    expected, found = (
        trainer(model, device=device, **options).fit(samples, labels) for device in ("cpu", "openvino")
    )
    for weight, array in expected.trained_coef_.items():
        distance = np.linalg.norm(found.trained_coef_[weight] - array) / np.linalg.norm(array)
        assert distance < 1e-3, weight
    left, right = found.predict(samples), expected.predict(samples)
    assert np.mean(np.isclose(left, right, rtol=1e-2, atol=1e-2)) > 0.99
    nodes = explain(found).execution
    assert PROVIDER in nodes and nodes.startswith("graph ")


def test_loop_runs_on_openvino():
    model, samples, labels, rate = CASES["network"]
    trained = OrtGradientOptimizer(model, learning_rate=rate, max_iter=2, device="openvino").fit(
        samples, labels
    )
    nodes = trained.get_node_providers()["epoch"]
    assert nodes[PROVIDER]["Loop"] == 1
    assert sum(nodes[PROVIDER].values()) > 10 * sum(nodes.get("CPUExecutionProvider", {}).values())


def test_partial_fit_with_less_than_a_batch():
    trained = {}
    for device in ("cpu", "openvino"):
        trained[device] = OrtGradientOptimizer(
            SGDRegressor(), learning_rate="Adam", max_iter=2, batch_size=20, random_state=0, device=device
        ).fit(X, Y / 100)
        for start in (0, 30):
            trained[device].partial_fit(X[start : start + 25], Y[start : start + 25] / 100)
            trained[device].partial_fit(X[start : start + 3], Y[start : start + 3] / 100)
    expected = trained["cpu"].trained_coef_
    for weight, array in trained["openvino"].trained_coef_.items():
        np.testing.assert_allclose(array, expected[weight], rtol=1e-3, atol=1e-5)


def test_diverging_training():
    found = {}
    for device in ("cpu", "openvino"):
        found[device] = OrtGradientOptimizer(
            SGDRegressor(),
            learning_rate=LearningRateSGD(1e12),
            max_iter=3,
            exc=False,
            random_state=0,
            device=device,
        )
        with pytest.warns(UserWarning, match="training diverged"):
            found[device].fit(X, Y)
    for weight, array in found["cpu"].trained_coef_.items():
        np.testing.assert_allclose(found["openvino"].trained_coef_[weight], array, rtol=1e-2)


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FidelityWarning")  # where there is bfloat16
def test_half_precision_option():
    options = ("openvino", {"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "bf16"}}'})
    model, samples, labels, rate = CASES["network"]
    settings = {"learning_rate": rate, "max_iter": 2, "random_state": 0, "keep_better": False}
    exact = OrtGradientOptimizer(model, device="openvino", **settings).fit(samples, labels)
    half = OrtGradientOptimizer(model, device=options, **settings).fit(samples, labels)
    np.testing.assert_allclose(half.predict(samples), exact.predict(samples), atol=0.1)


def test_unsupported_nodes_run_on_the_cpu(device):
    if device.plugin:
        pytest.skip("the plugin reads the routing of trees")
    model, samples, labels, rate = CASES["leaves"]
    with pytest.warns(ProviderWarning, match="cannot run a graph of this model, so the CPU runs it"):
        OrtGradientOptimizer(model, learning_rate=rate, max_iter=1, device="openvino").fit(samples, labels)
