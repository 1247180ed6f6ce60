"""Coefficients and intercept as one matrix inside the loop give the same training with fewer nodes."""

from collections import Counter

import numpy as np
import pytest
from onnx import helper, parser

from ortlearn import plugins
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.penalties import L1Penalty, L2Penalty
from ortlearn.training import Data, Device, EpochStep, SingleGraphStep, batch_loops, intercept_column, packing
from ortlearn.training.epoch_graph import epoch_graph
from ortlearn.training.intercept_column import first_layer
from tests.pairwise import pairwise

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


@pytest.fixture(autouse=True)
def several_batches(monkeypatch):
    monkeypatch.setattr(batch_loops, "BATCHES_PER_ITERATION", (4,))
    monkeypatch.setattr(batch_loops, "MIN_ITERATIONS", {4: 1})


@pytest.fixture
def samples():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(53, 2)).astype(np.float32)
    return Data(X, (X[:, :1] - 2 * X[:, 1:] + 3).astype(np.float32))


@pytest.fixture
def make_layer(make_task):
    def make(text=GRAPHS["(k,)"], **changes):
        model = parser.parse_model(text)
        names = sorted(value.name for value in model.graph.input if value.name != "x")
        return make_task(model=model, intercepts={name: name == "bias" for name in names}, **changes)

    return make


def start_of(task):
    rng = np.random.RandomState(1)
    values = {value.name: value for value in task.graph.model.graph.input}
    shapes = {n: [d.dim_value for d in values[n].type.tensor_type.shape.dim] for n in task.graph.weights}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def trained(step, samples):
    buffers = step.start(samples, [5, 3], start_of(step.task))
    step.set_rate(0.02)
    values = [step.run_epoch(np.arange(53), 5, buffers) for _ in range(3)]
    return np.concatenate(values), buffers.read()


def loop_counts(task, n_joined=4):
    loop = next(node for node in epoch_graph(task, 5, 3, n_joined).model.graph.node if node.op_type == "Loop")
    return Counter(node.op_type for node in helper.get_node_attr_value(loop, "body").node)


def elementwise_rates():
    """Every registered elementwise update, with all of its states."""
    for info in plugins.list_plugins(plugins.LEARNING_RATES):
        rate = plugins.get(info.group, info.name)()
        if rate.elementwise:
            options = {"momentum": 0.5, "centered": True} if info.name == "RMSprop" else {}
            yield pytest.param(rate.set_params(**options), id=info.name)


@pairwise(
    rate=elementwise_rates(),
    graph=GRAPHS,
    gradient=["rules", pytest.param("ort", marks=pytest.mark.needs_training)],
)
def test_the_same_weights_and_states(gradient, graph, rate, make_layer, samples, monkeypatch):
    monkeypatch.setattr(packing, "MAX_ELEMENTS", 0)
    task = make_layer(GRAPHS[graph], learning_rate=rate, gradient=gradient)
    assert first_layer(task, 5) == ("coef", "bias")
    assert "Pad" in loop_counts(task)
    expected_values, expected = trained(SingleGraphStep(task, CPU), samples)
    values, found = trained(EpochStep(task, CPU), samples)
    np.testing.assert_allclose(values, expected_values, rtol=1e-4)
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        assert found[key].shape == array.shape and found[key].dtype == array.dtype
        np.testing.assert_allclose(found[key], array, rtol=1e-4, atol=1e-5, err_msg=str(key))


def test_nodes_of_a_batch(make_layer):
    """A batch of a linear regression has two products and the scaling of the gradient."""
    task = make_layer(learning_rate=LearningRateSGD())
    joined = loop_counts(task)
    assert joined == {
        "Gather": 3, "Pad": 1, "Neg": 1, "Split": 2, "Gemm": 4 * 2, "Mul": 4 + 1,
        "Concat": 1, "ReduceSum": 2, "Less": 1
    }  # fmt: skip
    apart = epoch_graph(task, 5, 3, 4, tuned=False)
    loop = next(node for node in apart.model.graph.node if node.op_type == "Loop")
    assert len(helper.get_node_attr_value(loop, "body").node) >= sum(joined.values()) + 4


def test_samples_too_large_for_a_cache_are_gathered_batch_by_batch(make_layer, monkeypatch):
    task = make_layer(learning_rate=LearningRateSGD())
    monkeypatch.setattr("ortlearn.training.joined_batches.MAX_BYTES", 5 * 4 * 4 - 1)
    counts = loop_counts(task)
    assert (counts["Gather"], counts["Pad"], counts["Neg"]) == (2 + 4, 4, 4)


class NormedRate(LearningRateSGD):
    """A learning rate whose update is not elementwise."""

    elementwise = False


def test_weights_that_are_not_joined(make_layer, monkeypatch):
    assert first_layer(make_layer(), 5) == ("coef", "bias")
    assert "Pad" not in loop_counts(make_layer(), n_joined=1)
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
    counts = loop_counts(make_layer(learning_rate=LearningRateAdam()))
    assert counts["Sqrt"] == 4 and "Pad" not in counts
