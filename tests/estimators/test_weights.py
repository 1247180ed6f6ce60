"""set_weights and get_weights, and training graphs of untrained estimators."""

import numpy as np
import onnx
import pytest
from onnx import parser
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGDNesterov
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session

FILE = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[N,3] x) => (float[N,1] y) <float[3,1] w = {1, 1, 1}, float[1] b = {0}>
    { z = MatMul (x, w) y = Add (z, b) }""")
X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
Y = X @ np.array([1.0, 2.0, 3.0]) + 1
MODELS = {
    "ridge": Ridge(),
    "pipeline": make_pipeline(StandardScaler(), LinearRegression()),
    "network": MLPRegressor(hidden_layer_sizes=(4,), max_iter=5),
    "file": FILE,
}


@pytest.fixture(params=MODELS)
def trained(request, optimizer):
    settings = {"learning_rate": "Nesterov", "max_iter": 3, "random_state": 0}
    with np.errstate(all="ignore"):
        return optimizer(MODELS[request.param], **settings).fit(X, Y)


def test_results_use_the_set_weights(trained):
    before = trained.predict(X)
    weights = trained.get_weights()
    moved = {name: array + 0.25 for name, array in weights.items()}
    assert trained.set_weights(moved) is trained
    after = trained.predict(X)
    assert not np.allclose(after, before, atol=1e-2)
    for name, array in trained.get_weights().items():
        np.testing.assert_array_equal(array, moved[name])
        np.testing.assert_array_equal(trained.trained_coef_[name], moved[name])
    session = make_session(trained.get_trained_onnx(), Device("cpu"))
    (found, *_) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(np.ravel(found), after, rtol=1e-5)
    if not isinstance(trained.estimator, onnx.ModelProto):
        np.testing.assert_allclose(trained.to_sklearn().predict(X), after, rtol=1e-4, atol=1e-5)
    trained.set_params(learning_rate=1e-12).partial_fit(X, Y)
    np.testing.assert_allclose(trained.predict(X), after, rtol=1e-5)
    trained.set_weights(weights)
    np.testing.assert_array_equal(trained.predict(X), before)


def test_get_weights_returns_copies(trained):
    before = trained.predict(X)
    for array in trained.get_weights().values():
        array[...] = 0
    np.testing.assert_array_equal(trained.predict(X), before)
    moved = {name: array * 0 for name, array in trained.get_weights().items()}
    trained.set_weights(moved)
    for array in moved.values():
        array[...] = 7
    assert not np.any(np.concatenate([array.ravel() for array in trained.trained_coef_.values()]))


@pytest.mark.sweep(1)
def test_momentum_is_reset(optimizer):
    """partial_fit after set_weights equals a first epoch from these weights."""
    start = {"coef": np.ones((3, 1)), "intercept": [0.5]}
    rate = LearningRateSGDNesterov(eta0=0.01, learning_rate="constant")
    settings = {"learning_rate": rate, "batch_size": 40, "random_state": 0}
    one, other = (optimizer(Ridge(), max_iter=n, **settings).fit(X, Y) for n in (1, 5))
    results = [model.set_weights(start).partial_fit(X, Y).get_weights() for model in (one, other)]
    for name in start:
        np.testing.assert_allclose(results[0][name], results[1][name], rtol=1e-6)


def test_averages_are_reset(optimizer):
    model = optimizer(Ridge(), average=True, learning_rate=1e-9, max_iter=5, random_state=0).fit(X, Y)
    model.set_weights({"coef": np.full((3, 1), 5.0)}).partial_fit(X, Y)
    np.testing.assert_allclose(model.get_weights()["coef"], 5.0, rtol=1e-4)


def test_constrained_weights(optimizer):
    model = optimizer(GaussianMixture(2, random_state=0), warm_start=True, max_iter=1, random_state=0).fit(X)
    weights = model.get_weights()
    model.set_weights(weights)
    for name, array in model.get_weights().items():
        np.testing.assert_allclose(array, weights[name], rtol=1e-5, atol=1e-6)
    (name,) = [name for name, array in weights.items() if array.shape == (2,)]
    with pytest.raises(ValueError, match=f"Weight '{name}' must be"):
        model.set_weights({name: [-1.0, 2.0]})


BAD = {
    "unknown": ({"coeff": 1.0}, r"names among \['coef', 'intercept'\], not \['coeff'\]"),
    "not named": ([np.zeros((3, 1))], r"names among \['coef', 'intercept'\]"),
    "shape": ({"intercept": [1.0], "coef": np.zeros(3)}, r"'coef' has shape \(3, 1\), not \(3,\)"),
    "nan": ({"coef": np.full((3, 1), np.nan)}, "'coef' must be finite"),
    "large": ({"coef": np.full((3, 1), 1e39)}, "'coef' must be finite as float32"),
    "text": ({"intercept": ["one"]}, "could not convert"),
    "masked": ({"intercept": np.ma.ones(1)}, "masked array"),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_weights(optimizer, case):
    model = optimizer(Ridge(), max_iter=2, random_state=0).fit(X, Y)
    before = model.get_weights()
    weights, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        model.set_weights(weights)
    for name, array in model.get_weights().items():
        np.testing.assert_array_equal(array, before[name])


def test_before_fit(optimizer):
    for call in (lambda model: model.get_weights(), lambda model: model.set_weights({})):
        with pytest.raises(NotFittedError):
            call(optimizer(Ridge()))


FITTED = {
    "file": FILE,
    "ridge": Ridge().fit(X, Y),
    "pipeline": make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y),
    "clusters": KMeans(2, random_state=0).fit(X),
}


@pytest.mark.parametrize("rate", ["SGD", "LBFGS"])
@pytest.mark.parametrize("name", FITTED)
def test_training_graphs_before_fit(optimizer, name, rate, tmp_path):
    model = optimizer(FITTED[name], learning_rate=rate)
    graphs = model.save_onnx_graph()
    assert not hasattr(model, "onnx_") and len(graphs) >= 2
    paths = model.save_onnx_graph(tmp_path / "new")
    assert {name: path.read_bytes() for name, path in paths.items()}.keys() == graphs.keys()
    for graph in graphs.values():
        onnx.load_from_string(graph)
    assert onnx.load(paths["model"]).graph.node == onnx.load_from_string(graphs["model"]).graph.node
    trained = OrtGradientOptimizer(paths["model"] if name != "clusters" else FITTED[name], max_iter=1)
    assert "trained" in trained.fit(X, Y).save_onnx_graph()


def test_training_graphs_of_an_unfitted_estimator(optimizer):
    with pytest.raises(NotFittedError, match="not fitted, and its graphs depend on the data: call fit"):
        optimizer(Ridge()).save_onnx_graph()
