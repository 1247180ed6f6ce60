"""Coefficients and intercept as one matrix inside the loop give the same training with fewer nodes."""

from typing import ClassVar

import numpy as np
import pytest
from onnx import parser

from ortlearn import plugins
from ortlearn.data.samples import Data
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.penalties import L1Penalty, L2Penalty
from ortlearn.runtime.devices import Device
from ortlearn.training.optimisations import intercept_column
from ortlearn.training.optimisations.intercept_column import first_layer
from ortlearn.training.optimisations.joined_batches import MAX_BYTES
from ortlearn.training.optimisations.packing import is_worth_packing
from ortlearn.training.steps.epoch_graph import epoch_graph
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.pairwise import pairwise
from tests.training.examples import assert_same, loop_counts, random_start, train

CPU = Device("cpu")
LINEAR = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,2] x, float[2,1] coef, float[{}] bias) => (float[N,1] score)
    {{ z = MatMul (x, coef) score = Add ({}) }}"""
NETWORK = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,2] x, float[1,3] bias, float[2,3] coef, float[3,1] second) => (float[N,1] score)
    { h = MatMul (x, coef) t = Add (h, bias) r = Relu (t) score = MatMul (r, second) }"""
GRAPHS = {
    "(k,)": LINEAR.format("1", "z, bias"),
    "(1, k)": LINEAR.format("1,1", "bias, z"),
    "network": NETWORK,
}


#: A weight that makes packing all of them slower.
WIDE = "float[100001] wide", "mean = ReduceMean <keepdims = 0> (wide) score = Add (known, mean)"


class FourBatchesStep(EpochStep):
    """EpochStep with four batches per iteration, for epochs of any length."""

    min_iterations: ClassVar = {4: 1}


@pytest.fixture
def samples():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(53, 2)).astype(np.float32)
    return Data(X, (X[:, :1] - 2 * X[:, 1:] + 3).astype(np.float32))


@pytest.fixture
def make_layer(make_task):
    def make(text=GRAPHS["(k,)"], is_wide=False, **changes):
        if is_wide:
            declared, nodes = WIDE
            text = text.replace("score = ", "known = ").replace(" }", f" {nodes} }}")
            text = text.replace(") =>", f", {declared}) =>")
        model = parser.parse_model(text)
        names = sorted(value.name for value in model.graph.input if value.name != "x")
        return make_task(model=model, intercepts={name: name == "bias" for name in names}, **changes)

    return make


def nodes_of(task, n_joined=4):
    return loop_counts(epoch_graph(task, 5, 3, n_joined))


def elementwise_rates():
    """Every registered elementwise update, with all of its states."""
    for info in plugins.list_plugins(plugins.LEARNING_RATES):
        rate = plugins.get(info.group, info.name)()
        if rate.elementwise:
            options = {"momentum": 0.5, "centered": True} if info.name == "RMSprop" else {}
            yield pytest.param(rate.set_params(**options), id=info.name)


@pytest.mark.slow
@pytest.mark.sweep(2)
@pairwise(
    rate=elementwise_rates(),
    graph=GRAPHS,
    gradient=["rules", pytest.param("ort", marks=pytest.mark.needs_training)],
)
def test_the_same_weights_and_states(gradient, graph, rate, make_layer, samples):
    task = make_layer(GRAPHS[graph], is_wide=True, learning_rate=rate, gradient=gradient)
    assert not is_worth_packing(task)
    assert first_layer(task, 5) == ("coef", "bias")
    assert "Pad" in nodes_of(task)
    start = random_start(task)
    expected_values, *expected = train(SingleGraphStep(task, CPU), samples, start, 5, rate=0.02, n_epochs=2)
    values, *found = train(FourBatchesStep(task, CPU), samples, start, 5, rate=0.02, n_epochs=2)
    np.testing.assert_allclose(values, expected_values, rtol=1e-4)
    assert_same(found, expected, rtol=1e-4, atol=1e-5)


def test_nodes_of_a_batch(make_layer):
    """A batch of a linear regression has two products and the scaling of the gradient."""
    task = make_layer(learning_rate=LearningRateSGD())
    joined = nodes_of(task)
    assert joined == {
        "Gather": 3, "Pad": 1, "Neg": 1, "Split": 2, "Gemm": 4 * 2, "Mul": 4 + 1,
        "Concat": 1, "ReduceSum": 2, "Less": 1
    }  # fmt: skip
    separate = loop_counts(epoch_graph(task, 5, 3, 4, layout=None))
    assert separate.total() >= joined.total() + 4


def test_samples_too_large_for_a_cache_are_gathered_batch_by_batch(make_layer):
    """The samples of an iteration, with the column of ones, exceed the bytes that are joined."""
    task, size = make_layer(learning_rate=LearningRateSGD()), 600
    for n_joined, gathered in ((8, 3), (16, 2 + 16)):
        assert (size * n_joined * 3 * 4 > MAX_BYTES) == (gathered > 3)
        counts = loop_counts(epoch_graph(task, size, 3, n_joined))
        assert counts["Gather"] == gathered


class NormedRate(LearningRateSGD):
    """A learning rate whose update is not elementwise."""

    elementwise = False


def test_weights_that_are_not_joined(make_layer):
    assert first_layer(make_layer(), 5) == ("coef", "bias")
    assert "Pad" not in nodes_of(make_layer(), n_joined=1)
    assert first_layer(make_layer(learning_rate=NormedRate()), 5) is None
    assert first_layer(make_layer(penalty=L2Penalty(0.1)), 5) is None
    assert first_layer(make_layer(penalty=L1Penalty(0.1)), 5) is None
    assert first_layer(make_layer(penalty=L2Penalty(0.1, weights="other")), 5) == ("coef", "bias")
    assert first_layer(make_layer(not_negative=frozenset({"coef"})), 5) is None
    frozen = make_layer().changed(intercepts={"coef": False})
    assert first_layer(frozen, 5) is None
    twice = GRAPHS["(k,)"].replace("Add (z, bias)", "Add (z, bias) unused = Neg (x) other = Add (z, unused)")
    assert first_layer(make_layer(twice), 5) is None
    assert first_layer(make_layer(), intercept_column.MAX_NUMBERS // 2 + 1) is None


def test_adam_packs_all_weights(make_layer):
    counts = nodes_of(make_layer(learning_rate=LearningRateAdam()))
    assert counts["Sqrt"] == 4 and "Pad" not in counts
