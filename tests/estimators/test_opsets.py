"""ONNX models of all supported opsets are trained for any number of batches."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from ortlearn import plugins
from ortlearn.onnx_files.versions import MIN_OPSET
from ortlearn.runtime.readable_versions import newest_opset
from tests.pairwise import pairwise

OPSETS = range(MIN_OPSET, newest_opset() + 1)
#: Opsets before and after each change of an operator of training graphs.
SOME_OPSETS = sorted({13, 15, 17, 18, 21, newest_opset()})
SIZE, ETA = 3, 0.05
RNG = np.random.RandomState(0)
START = {
    "w": RNG.normal(0, 0.5, (2, 4)),
    "b": RNG.normal(0, 0.5, 4),
    "v": RNG.normal(0, 0.5, (4, 1)),
    "e": RNG.normal(0, 0.5, 1),
}
X = RNG.normal(size=(500 * SIZE + 2, 2)).astype(np.float32)
Y = (X[:, 0] - X[:, 1] ** 2).astype(np.float32)


def network(opset, n_outputs=1):
    """Return ``tanh(x w + b) v + e`` as an ONNX model of an opset."""
    weights = {**START, "v": np.repeat(START["v"], n_outputs, axis=1), "e": np.repeat(START["e"], n_outputs)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "v", "e"], ["score"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", 1, ["n", 2])],
        [helper.make_tensor_value_info("score", 1, ["n", n_outputs])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def sgd(n_samples):
    """Return the weights after an epoch of SGD in float64."""
    w, b, v, e = (START[name].astype(np.float32).astype(np.float64) for name in "wbve")
    for start in range(0, n_samples, SIZE):
        x, y = X[start : min(start + SIZE, n_samples)], Y[start : min(start + SIZE, n_samples), None]
        hidden = np.tanh(x @ w + b)
        slope = (hidden @ v + e - y) / len(x)
        inner = slope @ v.T * (1 - hidden**2)
        w, b = w - ETA * x.T @ inner, b - ETA * inner.sum(axis=0)
        v, e = v - ETA * hidden.T @ slope, e - ETA * slope.sum(axis=0)
    return {"w": w, "b": b, "v": v, "e": e}


@pytest.mark.sweep(8)
@pairwise(
    indirect=["optimizer"], opset=OPSETS, n_batches=[1, 31, 32, 33, 500], optimizer=["one_graph", "two_calls"]
)
def test_epoch_equals_sgd_in_numpy(opset, n_batches, optimizer):
    for n_samples in (n_batches * SIZE, n_batches * SIZE + 2):  # with a full or short last batch
        trained = optimizer(
            network(opset), learning_rate=ETA, batch_size=SIZE, shuffle=False, max_iter=1, warm_start=True
        ).fit(X[:n_samples], Y[:n_samples])
        for name, expected in sgd(n_samples).items():
            np.testing.assert_allclose(trained.trained_coef_[name], expected, rtol=0, atol=1e-5)


def kinds():
    """Return parameters with each registered loss, penalty and update."""
    found = [{"clip_norm": 0.5}, {"clip_value": 0.1}, {"average": True}]
    for group, name in (
        (plugins.LOSSES, "learning_loss"),
        (plugins.PENALTIES, "learning_penalty"),
        (plugins.LEARNING_RATES, "learning_rate"),
    ):
        own = [info for info in plugins.list_plugins(group) if info.distribution == "ortlearn"]
        found += [{name: alias} for alias in {info.value: info.name for info in own}.values()]
    # LBFGS warns of few iterations; labels of the other one have a column per level.
    left_out = {"learning_rate": "LBFGS"}, {"learning_loss": "quantiles"}
    return [kind for kind in found if kind not in left_out]


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
@pytest.mark.parametrize("settings", kinds(), ids=str)
def test_plugins_at_old_and_new_opsets(settings, gradient, optimizer):
    loss = plugins.get(plugins.LOSSES, settings.get("learning_loss", "squared_error"))
    x = X[: 40 * SIZE + 1]
    positive = np.abs(Y[: len(x)]) + 0.1
    positive = np.minimum(positive, loss().domain.high)
    classes = [(x[:, 0] > 0) * 1, np.digitize(x[:, 0], [-0.4, 0.4])]
    for y in [positive] if "regression" in loss.tasks else classes:
        results = []
        for opset in SOME_OPSETS:
            n_outputs = 3 if y.max() == 2 else 1
            options = {"learning_rate": ETA, "batch_size": SIZE, "max_iter": 2, "random_state": 0}
            model = network(opset, n_outputs)
            trained = optimizer(model, warm_start=True, gradient=gradient, **{**options, **settings}).fit(
                x, y
            )
            results.append(np.concatenate([np.ravel(array) for array in trained.trained_coef_.values()]))
        for got in results:
            np.testing.assert_allclose(got, results[0], rtol=0, atol=1e-5)
