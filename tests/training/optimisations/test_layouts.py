"""Matrices stored transposed inside the epoch give the same training."""

import zlib
from functools import partial

import numpy as np
import pytest
from onnx import parser

from ortlearn.data.samples import Data
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import L1Penalty, L2Penalty
from ortlearn.runtime.devices import Device
from ortlearn.training.optimisations.layouts import faster_layouts, product_cost
from ortlearn.training.steps.epoch_graph import batch_graph
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.training.examples import assert_same, random_start, train

CPU = Device("cpu")
INPUTS = "float[N,4] x, float[4,6] w1, float[{b}] b1, float[6,5] w2, float[5,1] w3"
BODIES = {
    "dense": "z = MatMul (x, w1) t = Add (z, b1) h = Relu (t) u = MatMul (h, w2) r = Tanh (u)",
    "gemm": "t = Gemm <alpha = 0.5, beta = 2.0> (x, w1, b1) h = Sigmoid (t) u = MatMul (h, w2) r = Relu (u)",
    "skip": "z = MatMul (x, w1) t = Add (z, b1) h = Relu (t) s = Tanh (t) a = Mul (h, s) r = MatMul (a, w2)",
    "sums": """z = MatMul (x, w1) t = Add (z, b1) m = ReduceMean <keepdims = 1> (t, last) h = Sub (t, m)
               u = MatMul (h, w2) r = Relu (u)""",
    "softmax": "z = MatMul (x, w1) t = Add (z, b1) h = Softmax (t) u = MatMul (h, w2) r = Relu (u)",
    "constant": """z = MatMul (x, w1) t = Add (z, b1) h = Mul (t, scale) u = MatMul (h, fixed)
                   r = MatMul (u, w2)""",
    "tied": """z = MatMul (x, w1) t = Add (z, b1) h = Relu (t) turned = Transpose <perm = [1, 0]> (w1)
               back = MatMul (h, turned) again = MatMul (back, w1) r = MatMul (again, w2)""",
}
CONSTANTS = """<int64[1] last = {1}, float[1,6] scale = {1, 2, 3, 4, 5, 6}, float[6,6] fixed = {
    1, 0, 0, 0, 0, 2,  0, 1, 0, 0, 0, 0,  0, 0, 1, 0, 3, 0,  0, 0, 0, 1, 0, 0,  0, 0, 0, 0, 1, 0,
    0, 1, 0, 0, 0, 1}>"""


@pytest.fixture
def make_model(make_task):
    """Return a function that creates the task of a graph in text form, with weights called w and b."""

    def make(text, n_features, **changes):
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
        names = sorted(value.name for value in model.graph.input if value.name != "x")
        features = {"x": TensorType(1, (None, n_features))}
        intercepts = {name: name == "b1" for name in names}
        return make_task(model=model, intercepts=intercepts, features=features, **changes)

    return make


@pytest.fixture
def make_network(make_model):
    def make(body="dense", bias="6", **changes):
        nodes = f"{{ {BODIES[body]} score = MatMul (r, w3) }}"
        return make_model(
            f"g ({INPUTS.format(b=bias)}) => (float[N,1] score) {CONSTANTS} {nodes}", 4, **changes
        )

    return make


@pytest.fixture
def samples():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(53, 4)).astype(np.float32)
    return Data(X, X[:, :1] * X[:, 1:2] + 3)


def arbitrary_layout(seed, step, fixed=None):
    """Choose a layout by arbitrary costs of products."""
    return faster_layouts(step, fixed, lambda *form: float(zlib.crc32(repr((seed, form)).encode())))


def step_of(layout, **attributes):
    """Return a kind of EpochStep with another choice of layouts."""
    return type("LayoutStep", (EpochStep,), {"layout": staticmethod(layout), **attributes})


def assert_same_training(task, samples, step_class, size=5):
    start, step = random_start(task, 0.3), step_class(task, CPU)
    expected_losses, *expected = train(SingleGraphStep(task, CPU), samples, start, size, rate=0.002)
    losses, *found = train(step, samples, start, size, rate=0.002)
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    assert_same(found, expected, rtol=1e-4, atol=2e-6)
    assert all(array.flags.c_contiguous for arrays in found for array in arrays.values())
    return {item.weight for item in step.carried if item.transposed}


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize("body, bias", [*((body, "6") for body in BODIES), ("dense", "1,6"), ("gemm", "1,6")])
def test_arbitrary_layouts_give_the_same_training(body, bias, make_network, samples):
    chosen = set()
    for seed in range(4):
        # Another constant per seed: sessions of equal tasks are cached.
        task = make_network(
            body, bias, penalty=L2Penalty(0.01 + 1e-6 * seed), learning_rate=LearningRateSGDNesterov()
        )
        chosen |= assert_same_training(task, samples, step_of(partial(arbitrary_layout, seed)))
    assert chosen & {"w2", "w3"}
    assert ("w1" in chosen) == (body != "tied")  # a Transpose reads it as it is


@pytest.mark.parametrize("size", [4, 13, 26, 52, 53])
def test_short_last_batches(size, make_network, samples):
    """The last batch has 1, 1, 1, 1 and 0 samples; its products have other sizes, but the same weights."""
    step_class = step_of(partial(arbitrary_layout, 1), min_iterations={4: 1})
    task = make_network(learning_rate=LearningRateSGD(eta0=0.02))
    assert assert_same_training(task, samples, step_class, size)


@pytest.mark.parametrize(
    "changes", [{"penalty": L1Penalty(0.1)}, {"clip_norm": 0.5}, {"weighted": True}], ids=str
)
@pytest.mark.parametrize("rate", [LearningRateSGD(), LearningRateAdam(), LearningRateSGDNesterov()], ids=repr)
def test_updates_and_penalties(rate, changes, make_network, samples):
    if "weighted" in changes:
        samples = Data(samples.X, samples.y, np.linspace(0.5, 2, 53, dtype=np.float32))
    # Projected weights are not packed to one vector, which would have no layout.
    task = make_network(learning_rate=rate, not_negative=frozenset({"w3"}), **changes)
    assert assert_same_training(task, samples, step_of(partial(arbitrary_layout, 2)))


def test_a_last_batch_that_cannot_use_the_layout(make_network, samples):
    calls = []

    def first_only(step, fixed=None):
        calls.append(fixed)
        return arbitrary_layout(1, step) if fixed is None else None

    task = make_network(learning_rate=LearningRateSGD(eta0=0.03))
    assert assert_same_training(task, samples, step_of(first_only))
    assert any(calls[-1].values())


def test_weights_that_must_stay_as_written(make_network):
    step = batch_graph(make_network("tied", learning_rate=LearningRateSGD()), 5)
    assert faster_layouts(step, {"w1": True}) is None
    turned = faster_layouts(step, {"w1": False, "w2": True})
    assert {item.source for item in turned.carried if item.transposed} >= {"w2"}


def test_large_layers_are_stored_transposed(make_model):
    """The products of the gradient are faster then (784-512-256-1, batches of 128)."""
    text = """g (float[N,784] x, float[784,512] w1, float[512,256] w2, float[256,1] w3) => (float[N,1] score)
        { z = MatMul (x, w1) h = Relu (z) u = MatMul (h, w2) r = Relu (u) score = MatMul (r, w3) }"""
    step = faster_layouts(batch_graph(make_model(text, 784), 128))
    assert [item.weight for item in step.carried if item.transposed and item.state is None] == ["w1"]


def test_linear_models_keep_their_column(make_model):
    """A matrix times a column is fastest as it is."""
    text = "g (float[N,100] x, float[100,1] w) => (float[N,1] score) { score = MatMul (x, w) }"
    step = batch_graph(make_model(text, 100), 256)
    assert faster_layouts(step) is step


@pytest.mark.parametrize(
    "form, microseconds",
    [
        ((128, 512, 784, False, False, None), 627),
        ((784, 512, 128, True, False, 0.9), 939),
        ((512, 784, 128, False, False, 0.9), 803),
        ((15, 50, 101, False, False, None), 2.11),
        ((50, 15, 101, False, True, None), 1.57),
        ((256, 1, 100, False, False, None), 1.55),
        ((256, 1, 100, False, True, None), 5.21),
        ((64, 10, 256, True, False, None), 7.44),
    ],
)
def test_estimated_times_are_near_measured_ones(form, microseconds):
    assert product_cost(*form) / 1000 == pytest.approx(microseconds, rel=0.35)
