"""Training graphs computed with and without graph optimizations of onnxruntime, which must agree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import parser

from benchmarks.model_zoo.cases import catalogue
from benchmarks.model_zoo.measurement import Measurement
from benchmarks.model_zoo.training import PLAIN, perturbed
from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.runtime.devices import Device
from ortlearn.runtime.onnxruntime_module import runtime
from ortlearn.runtime.sessions import make_session, session_options
from ortlearn.training.graphs.names import RATE
from ortlearn.training.steps import epoch_graph
from ortlearn.training.steps.epoch_graph import ORDER, REST

SIZE, BATCHES, LAST = 8, 3, 3
CASES = catalogue()


def results(model, feeds, level):
    options = session_options()
    options.graph_optimization_level = getattr(runtime().GraphOptimizationLevel, level)
    return make_session(model, Device("cpu"), options=options).run(None, feeds)


def compare_levels(name, n_joined):
    """Compare an epoch of a model with optimizations and without; return whether it trains."""
    measured = Measurement(CASES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured.fits()
        if not measured.prepares()["ok"]:
            return False
    prepared = measured.prepared
    graph = epoch_graph.epoch_graph(prepared.task, SIZE, LAST, n_joined)
    dtype, weights = prepared.task.graph.dtype, perturbed(prepared.weights, 0.05)
    feeds = {**prepared.columns, RATE: np.asarray(1e-3, dtype)}
    feeds[ORDER] = np.arange(SIZE * BATCHES).reshape(BATCHES, SIZE)
    feeds[REST] = np.arange(SIZE * BATCHES, SIZE * BATCHES + LAST)
    for item in graph.carried:
        start = weights[item.weight] if item.state is None else np.zeros_like(weights[item.weight])
        feeds[item.source] = np.ascontiguousarray(start.T) if item.transposed else start
    feeds = {value.name: feeds[value.name] for value in graph.model.graph.input}
    expected = results(graph.model, feeds, "ORT_DISABLE_ALL")
    for got, array in zip(results(graph.model, feeds, "ORT_ENABLE_BASIC"), expected, strict=True):
        assert got.shape == array.shape
        largest = np.abs(array).max(initial=1e-6)
        np.testing.assert_allclose(got, array, rtol=1e-3, atol=1e-3 * largest, err_msg=name)
    return True


@pytest.mark.parametrize("name", ["MLPClassifier:labels", "PCA:rows", "SVC:classes", "GaussianMixture:diag"])
def test_epoch_of_a_model(name):
    assert compare_levels(name, 1) and compare_levels(name, 3)


@pytest.mark.rest
def test_epochs_of_all_models():
    """About a minute."""
    trained = sum(compare_levels(name, 1) for name in CASES)
    assert trained > 0.8 * len(CASES)


#: Networks of eight columns with a Transpose that keeps the order of axes.
NETWORKS = {
    "before a product": "t = Transpose <perm = [0, 1]> (x) h = MatMul (t, w) a = Tanh (h) y = MatMul (a, v)",
    "after a product": "h = MatMul (x, w) t = Transpose <perm = [0, 1]> (h) a = Tanh (t) y = MatMul (a, v)",
    "of a weight": "t = Transpose <perm = [0, 1]> (w) h = MatMul (x, t) a = Tanh (h) y = MatMul (a, v)",
    "of hidden values": "h = MatMul (x, w) a = Tanh (h) t = Transpose <perm = [0, 1]> (a) y = MatMul (t, v)",
    "of sums": "h = MatMul (x, w) s = Add (h, h) a = Tanh (s) t = Transpose <perm = [0, 1]> (a) "
    "p = MatMul (t, v) y = Add (p, p)",
}


@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("name", NETWORKS)
def test_transpose_that_keeps_the_order_of_axes(name, optimizer):
    def network(nodes):
        return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
            g (float[N,8] x) => (float[N,8] y) <float[8,8] w = {{{start[0]}}}, float[8,8] v = {{{start[1]}}}>
            {{ {nodes} }}""")

    rng = np.random.default_rng(0)
    start = [", ".join(map(str, rng.normal(size=64).round(3))) for _ in range(2)]
    X = rng.normal(size=(8, 8)).astype(np.float32)
    y = rng.normal(size=(8, 8)).astype(np.float32)
    options = {**PLAIN, "max_iter": 1, "batch_size": 8, "early_stopping": False}
    nodes = NETWORKS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (
            optimizer(network(text), **options).fit(X, y)
            for text in (nodes, nodes.replace("Transpose <perm = [0, 1]>", "Identity"))
        )
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-5, atol=1e-6)
