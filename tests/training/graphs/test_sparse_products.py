"""Epochs on the entries of sparse samples, compared with dense samples."""

from itertools import cycle

import numpy as np
import pytest
import scipy.sparse
from onnx import parser
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ortlearn.data.orders import batch_sizes
from ortlearn.data.passes import PassesInMemory
from ortlearn.data.samples import Data
from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import (
    LearningRateAdadelta,
    LearningRateAdagrad,
    LearningRateAdam,
    LearningRateAdamW,
    LearningRateLBFGS,
    LearningRateLion,
    LearningRateRMSprop,
    LearningRateSGD,
    LearningRateSGDNesterov,
)
from ortlearn.losses import SquaredErrorLoss
from ortlearn.penalties import (
    ElasticPenalty,
    GroupLassoPenalty,
    L1Penalty,
    L2Penalty,
    MaxNormPenalty,
    NoPenalty,
)
from ortlearn.penalties.anchored import AnchoredPenalty
from ortlearn.runtime.devices import Device
from ortlearn.training.graphs import sparse_products
from ortlearn.training.graphs.averaging import Averaged
from ortlearn.training.graphs.sparse_products import entry_bytes, sparse_features, stays_sparse
from ortlearn.training.graphs.task import Objective, ScoreGraph, TrainingTask, Update
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings
from ortlearn.training.solvers.gradient_step import GradientStep
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep
from tests.pairwise import pairwise

CPU = Device("cpu")
RNG = np.random.default_rng(0)
N_SAMPLES, N_COLUMNS = 61, 200
DENSE = np.where(
    RNG.uniform(size=(N_SAMPLES, N_COLUMNS)) < 0.02, RNG.normal(size=(N_SAMPLES, N_COLUMNS)), 0.0
)
DENSE[5:9] = 0  # rows without entries
DENSE[:, 3] = 0  # a column without entries
DENSE[:, 7] = 1  # a column with entries in all rows
LABELS = DENSE @ RNG.normal(size=N_COLUMNS)
MODELS = {
    "regression": (Ridge(), LABELS),
    "binary": (LogisticRegression(), LABELS > 0),
    "classes": (LogisticRegression(), np.digitize(LABELS, [-0.5, 0.5])),
    "outputs": (LinearRegression(), np.stack([LABELS, -LABELS], axis=1)),
    "without intercept": (LinearRegression(fit_intercept=False), LABELS),
    "network": (MLPClassifier(hidden_layer_sizes=(5, 4)), LABELS > 0),
    "thin network": (MLPRegressor(hidden_layer_sizes=(1,)), LABELS),
}
RATES = {
    "SGD": LearningRateSGD(),
    "momentum": LearningRateSGDNesterov(nesterov=False),
    "Nesterov": LearningRateSGDNesterov(),
    "Adam": LearningRateAdam(),
    "AdamW": LearningRateAdamW(weight_decay=0.1),
    "RMSProp": LearningRateRMSprop(),
    "Adagrad": LearningRateAdagrad(),
    "Adadelta": LearningRateAdadelta(),
    "Lion": LearningRateLion(),
    "averaged": Averaged(LearningRateSGD(), begin=4),
}
PENALTIES = {
    "none": NoPenalty(),
    "l1": L1Penalty(0.01),
    "l1 by its gradient": L1Penalty(0.01, proximal=False),
    "l2": L2Penalty(0.02),
    "elastic": ElasticPenalty(l1=0.01, l2=0.02),
    "toward start": L2Penalty(0.02, toward="start"),
    "groups": GroupLassoPenalty(0.01),
    "ball": MaxNormPenalty(0.9),
}


@pytest.fixture(scope="module")
def made():
    """Return a function that returns task, samples and weights of a model, cached."""
    known = {}

    def make(name, dtype="float64"):
        if (name, dtype) not in known:
            model, labels = MODELS[name]
            options = {"dtype": dtype, "max_iter": 1, "learning_rate": "SGD", "random_state": 0}
            fitted = OrtGradientOptimizer(model, **options).fit(DENSE.astype(dtype), labels)
            task, rng = fitted._fitted.step.task, np.random.RandomState(1)
            sizes = {
                v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
                for v in task.graph.model.graph.input
            }
            weights = {
                name: rng.normal(0, 0.5, size=sizes[name]).astype(dtype) for name in task.graph.weights
            }
            encoded = fitted._fitted.problem.encoder.encode(labels, N_SAMPLES)
            known[name, dtype] = task, Data(DENSE.astype(dtype), encoded), weights
        return known[name, dtype]

    return make


def sparse(data):
    """Return the same samples as CSR."""
    return Data(scipy.sparse.csr_matrix(data.X), data.y, data.sample_weight)


def epochs(task, data, weights, batch_size, count=3):
    """Return the objectives, and weights and states, after some epochs, and the graph."""
    step = EpochStep(task, CPU)
    buffers = step.start(data, batch_sizes(len(data), batch_size), weights)
    rng, values = np.random.RandomState(5), []
    for _ in range(count):
        step.set_rate(0.05)
        values.append(step.run_epoch(rng.permutation(len(data)), batch_size, buffers))
    return np.concatenate(values), buffers.read(), step.graphs()["epoch"]


def assert_same(task, data, weights, batch_size, tol=1e-11):
    expected_values, expected, _ = epochs(task, data, weights, batch_size)
    values, carried, graph = epochs(task, sparse(data), weights, batch_size)
    np.testing.assert_allclose(values, expected_values, rtol=tol, atol=tol)
    assert carried.keys() == expected.keys()
    for key, array in expected.items():
        scale = max(1.0, np.abs(array).max())
        np.testing.assert_allclose(carried[key], array, rtol=0, atol=tol * scale, err_msg=str(key))
    assert any(np.abs(carried[name, None] - weights[name]).max() > 1e-3 for name in weights)
    features = next(iter(task.graph.features))
    assert features not in {value.name for value in graph.graph.input}


@pytest.mark.sweep(5)
@pytest.mark.parametrize(("name", "rate"), list(zip(cycle(["binary", "classes"]), RATES, strict=False)))
def test_updates_equal_dense_samples(name, rate, made):
    task, data, weights = made(name)
    task = task.changed(learning_rate=RATES[rate], penalty=L2Penalty(0.02))
    assert_same(task, data, weights, 7)


@pytest.mark.sweep(7)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rate", ["SGD", "momentum", "Adam"])
def test_penalties_equal_dense_samples(penalty, rate, made):
    task, data, weights = made("classes")
    start = {name: array * 0.5 for name, array in weights.items()}
    task = task.changed(learning_rate=RATES[rate], penalty=AnchoredPenalty(PENALTIES[penalty], start))
    assert_same(task, data, weights, 7)


@pytest.mark.sweep(6)
@pairwise(name=MODELS, batch_size=[1, 16, N_SAMPLES, 100], weighted=[False, True])
def test_models_equal_dense_samples(name, batch_size, weighted, made):
    task, data, weights = made(name)
    if weighted:
        data = Data(data.X, data.y, np.random.RandomState(2).uniform(0, 2, size=N_SAMPLES))
    task = task.changed(learning_rate=RATES["Nesterov"], penalty=PENALTIES["elastic"], weighted=weighted)
    assert_same(task, data, weights, batch_size)


def test_single_precision(made):
    task, data, weights = made("classes", "float32")
    assert_same(task.changed(learning_rate=RATES["Adam"], penalty=PENALTIES["l2"]), data, weights, 7, 1e-5)


def test_clipped_gradients_and_weights_that_are_not_negative(made):
    task, data, weights = made("regression")
    (coef,) = (name for name, is_intercept in task.graph.intercepts.items() if not is_intercept)
    task = task.changed(learning_rate=RATES["SGD"], penalty=NoPenalty(), clip_norm=0.1)
    assert_same(task.changed(not_negative=frozenset([coef])), data, weights, 7)


def test_duplicate_zero_and_unsorted_entries(made):
    task, data, weights = made("binary")
    task = task.changed(learning_rate=RATES["SGD"], penalty=NoPenalty())
    exact = scipy.sparse.csr_matrix(data.X)
    halves = scipy.sparse.csr_matrix(
        (np.repeat(exact.data, 2) / 2, np.repeat(exact.indices, 2), exact.indptr * 2), shape=exact.shape
    )
    for first, last in zip(halves.indptr[:-1], halves.indptr[1:], strict=True):
        halves.indices[first:last] = halves.indices[first:last][::-1]
        halves.data[first:last] = halves.data[first:last][::-1]
    assert not halves.has_canonical_format
    expected = epochs(task, data, weights, 7)[1]
    found = epochs(task, Data(halves, data.y), weights, 7)[1]
    for key, array in expected.items():
        np.testing.assert_allclose(found[key], array, rtol=0, atol=1e-11)


def graph(text, features, weights):
    """Return a task of a graph with an output f."""
    model = parser.parse_model(f"<ir_version: 8, opset_import: ['': 18]> {text}".replace("'", '"'))
    column = TensorType(1, (None, 1))
    return TrainingTask(
        ScoreGraph(model, features, "f", column, weights),
        Objective(SquaredErrorLoss(), NoPenalty(), column),
        Update(LearningRateSGD()),
    )


WIDE = TensorType(1, (None, 3))
PRODUCT = "g (float[N,3] x, float[3,1] w) => (float[N,1] f) { s = MatMul (x, w) f = %s }"


@pytest.mark.parametrize(
    ("text", "is_sparse"),
    [
        (PRODUCT % "Identity (s)", True),
        (PRODUCT % "Exp (s)", True),
        ("g (float[N,3] x, float[3,1] w) => (float[N,1] f) { v = Exp (w) f = MatMul (x, v) }", True),
        ("g (float[N,3] x, float[3,1] w) => (float[N,1] f) { a = Exp (x) f = MatMul (a, w) }", False),
        ("g (float[N,3] x, float[1,3] w) => (float[N,1] f) { f = Gemm <transB = 1> (x, w) }", False),
        (
            "g (float[N,3] x, float[3,1] w) => (float[N,1] f) "
            "{ s = MatMul (x, w) m = ReduceMax <keepdims = 1> (x) f = Add (s, m) }",
            False,
        ),
    ],
)
def test_only_features_that_are_only_multiplied_stay_sparse(text, is_sparse):
    task = graph(text, {"x": WIDE}, {"w": False})
    assert sparse_features(task.graph.model, ["x"]) == (frozenset(["x"]) if is_sparse else frozenset())
    assert sparse_features(task.graph.model, []) == frozenset()


def test_two_products_of_a_sparse_feature_and_a_dense_feature():
    text = """g (float[N,90] x, float[N,2] z, float[90,1] u, float[90,2] v, float[2,1] w) => (float[N,1] f)
        { a = MatMul (x, u) b = MatMul (x, v) c = Mul (b, z) d = MatMul (c, w) f = Add (a, d) }"""
    pair = TensorType(1, (None, 2))
    features = {"x": TensorType(1, (None, 90)), "z": pair}
    task = graph(text, features, {"u": False, "v": False, "w": False})
    rng = np.random.RandomState(0)
    x, z, y = (rng.normal(size=(20, width)).astype(np.float32) for width in (90, 2, 1))
    x *= x > 2
    weights = {"u": (90, 1), "v": (90, 2), "w": (2, 1)}
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in weights.items()}
    expected = epochs(task, Data(x, y, features={"x": x, "z": z}), weights, 6)[1]
    samples = Data(x, y, features={"x": scipy.sparse.csr_matrix(x), "z": z})
    _, found, epoch = epochs(task, samples, weights, 6)
    assert "x" not in {value.name for value in epoch.graph.input}
    for key, array in expected.items():
        np.testing.assert_allclose(found[key], array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk", [1, 500, 2**24])
@pytest.mark.parametrize("name", MODELS)
def test_objectives_of_sparse_samples_equal_dense_ones(name, chunk, weighted, made):
    task, data, weights = made(name)
    if weighted:
        data = Data(data.X, data.y, np.random.RandomState(2).uniform(0, 2, size=N_SAMPLES))
    task = task.changed(learning_rate=LearningRateLBFGS(), penalty=PENALTIES["l2"], weighted=weighted)
    found = []
    for samples in (data, sparse(data)):
        step = GradientStep(task, CPU)
        step.chunk_bytes = chunk
        step.start(samples, [], weights)
        found.append(step.evaluate(weights))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-12)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=0, atol=1e-12 * np.abs(found[0][1]).max())


def test_samples_are_not_converted_to_dense(made, monkeypatch):
    """Not even if the training diverges and the epoch is repeated."""
    task, data, weights = made("classes")
    samples = sparse(data)

    def fail(*arguments, **options):
        raise AssertionError("samples were made dense")

    monkeypatch.setattr(scipy.sparse.csr_matrix, "toarray", fail)
    steep = LearningRateSGD(eta0=1e15, learning_rate="constant")
    task = task.changed(learning_rate=steep, penalty=L2Penalty(0.1))
    settings = LoopSettings(max_iter=20, batch_size=7, exc=False)
    with pytest.warns(ConvergenceWarning):
        result = run_training(EpochStep(task, CPU), samples, TrainingState(weights), settings)
    assert all(np.isfinite(array).all() for array in result.weights.values())
    with monkeypatch.context() as patched:
        patched.undo()
        with pytest.warns(ConvergenceWarning):
            expected = run_training(EpochStep(task, CPU), data, TrainingState(weights), settings)
    assert result.n_iter == expected.n_iter
    for name, array in expected.weights.items():
        np.testing.assert_allclose(result.weights[name], array, rtol=1e-9)


def test_a_dense_chunk_after_a_sparse_one(made):
    task, data, weights = made("classes")
    numbers, found = np.arange(N_SAMPLES), []
    for first in (data, sparse(data)):
        step = EpochStep(task.changed(learning_rate=RATES["Adam"]), CPU)
        buffers = step.start(first, batch_sizes(N_SAMPLES, 7), weights, n_samples=2 * N_SAMPLES)
        step.set_rate(0.05)
        for chunk in (first, data):
            step.load(chunk, buffers)
            step.run_epoch(numbers, 7, buffers)
        found.append(buffers.read())
    for key, array in found[0].items():
        np.testing.assert_allclose(found[1][key], array, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["binary", "network"])
def test_features_with_many_entries_are_dense(name, made):
    task, data, weights = made(name)
    assert epochs(task, sparse(data), weights, 7)[2] != epochs(task, data, weights, 7)[2]
    many = Data(np.where(np.arange(N_COLUMNS) < 0.1 * N_COLUMNS, data.X + 1, data.X), data.y)
    assert epochs(task, sparse(many), weights, 7)[2] == epochs(task, many, weights, 7)[2]


def test_density_up_to_which_entries_are_used():
    limit = round(sparse_products.MAX_DENSITY * 10_000)
    for count, expected in ((0, True), (limit, True), (limit + 1, False)):
        dense = (np.arange(10_000) < count).reshape(100, 100).astype(float)
        assert stays_sparse(scipy.sparse.csr_matrix(dense)) == expected
        assert not stays_sparse(dense)


def test_bytes_of_a_sample():
    samples = scipy.sparse.csr_matrix(np.eye(4, dtype=np.float32))
    assert entry_bytes(samples) == 4 + 2 * 4 + 2 * 8
    assert entry_bytes(scipy.sparse.csr_matrix((3, 5), dtype=np.float64)) == 2 * 8


@pytest.mark.parametrize("n_samples", [300, 5000])
def test_orders_of_sparse_samples_take_half_the_memory(n_samples):
    """The order is that of dense samples."""
    orders = []
    for make in (np.zeros, scipy.sparse.csr_matrix):
        passes = PassesInMemory(Data(make((n_samples, 2)), np.zeros(n_samples)), seed=4)
        ((_, order),) = passes.chunks(1, 20)
        orders.append(order)
    dense, sparse = orders
    assert (dense.dtype, sparse.dtype) == (np.int64, np.int32)
    np.testing.assert_array_equal(dense, sparse)
