"""Packed weights give the same training with the nodes of one update."""

from collections import Counter

import numpy as np
import pytest
from onnx import helper, parser

from ortlearn import plugins
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.training import Device, EpochStep, SingleGraphStep, packing
from ortlearn.training.epoch_graph import epoch_graph

CPU = Device("cpu")
START = {
    "first": np.array([[0.5, -1.0, 2.0], [0.25, 1.5, -0.5]], np.float32),
    "second": np.array([[1.0], [-1.0], [0.5]], np.float32),
    "third": np.array([0.1], np.float32),
}
GRAPH = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,2] x, float[2,3] first, float[3,1] second, float[1] third) => (float[N,1] score)
    { h = MatMul (x, first) t = Tanh (h) z = MatMul (t, second) score = Add (z, third) }"""


@pytest.fixture
def task(make_task):
    return make_task(
        model=parser.parse_model(GRAPH),
        intercepts={"first": False, "second": False, "third": True},
        learning_rate=LearningRateAdam(eta0=0.05),
    )


def loop_counts(graph):
    (loop,) = [node for node in graph.model.graph.node if node.op_type == "Loop"]
    return Counter(node.op_type for node in helper.get_node_attr_value(loop, "body").node)


def trained(step, rows, states=None):
    buffers = step.start(rows, [5, len(rows) % 5], START, states)
    step.set_rate(0.05)
    values = [step.run_epoch(np.arange(len(rows)), 5, buffers) for _ in range(3)]
    return np.concatenate(values), buffers.read()


@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
def test_the_same_weights_and_states(gradient, task, rows):
    task = task.changed(gradient=gradient)
    assert packing.is_worth_packing(task) and len(rows) % 5
    expected_values, expected = trained(SingleGraphStep(task, CPU), rows)
    values, found = trained(EpochStep(task, CPU), rows)
    np.testing.assert_allclose(values, expected_values, rtol=1e-5)
    assert found.keys() == expected.keys() and len(found) == 3 * 5
    for key, array in expected.items():
        assert found[key].shape == array.shape
        np.testing.assert_allclose(found[key], array, rtol=1e-4, atol=1e-6, err_msg=str(key))


def packable():
    """Every registered update that may be packed, with all of its states."""
    for info in plugins.list_plugins(plugins.LEARNING_RATES):
        rate = plugins.get(info.group, info.name)()
        if rate.elementwise and not rate.scales_gradient:
            options = {"momentum": 0.5, "centered": True} if info.name == "RMSprop" else {}
            yield pytest.param(rate.set_params(**options), id=info.name)


@pytest.mark.parametrize("rate", list(packable()))
def test_every_elementwise_update(rate, task, rows):
    task = task.changed(learning_rate=rate)
    assert packing.is_worth_packing(task)
    expected_values, expected = trained(SingleGraphStep(task, CPU), rows)
    values, found = trained(EpochStep(task, CPU), rows)
    np.testing.assert_allclose(values, expected_values, rtol=1e-4)
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_allclose(found[key], array, rtol=1e-3, atol=1e-5, err_msg=str(key))


def test_continued_from_states(task, rows):
    _, after = trained(SingleGraphStep(task, CPU), rows)
    states = {key: value for key, value in after.items() if key[1] is not None}
    _, expected = trained(SingleGraphStep(task, CPU), rows, states)
    _, fresh = trained(SingleGraphStep(task, CPU), rows)
    _, found = trained(EpochStep(task, CPU), rows, states)
    np.testing.assert_allclose(found["first", None], expected["first", None], rtol=1e-4)
    assert np.abs(found["first", None] - fresh["first", None]).max() > 1e-3


def test_number_of_nodes(task, monkeypatch):
    assert loop_counts(epoch_graph(task, 5, 0))["Sqrt"] == 1
    monkeypatch.setattr(packing, "MAX_ELEMENTS", 9)
    assert loop_counts(epoch_graph(task, 5, 0))["Sqrt"] == 3


class NormedRate(LearningRateAdam):
    """A learning rate whose update is not elementwise."""

    elementwise = False


def test_weights_that_are_not_packed(task, make_task):
    assert packing.is_worth_packing(task)
    assert not packing.is_worth_packing(task.changed(learning_rate=NormedRate()))
    assert not packing.is_worth_packing(task.changed(learning_rate=LearningRateSGD()))
    assert not packing.is_worth_packing(make_task(learning_rate=LearningRateAdam()))
    assert task.graph.features == {"x": TensorType(1, (None, 2))}
