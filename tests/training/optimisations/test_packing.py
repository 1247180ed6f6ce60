"""Packed weights give the same training with the nodes of one update."""

import numpy as np
import pytest
from google.protobuf import text_format
from onnx import ModelProto

from ortlearn import plugins
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.runtime.devices import Device
from ortlearn.training.optimisations import packing
from ortlearn.training.steps.epoch_graph import epoch_graph
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.training.examples import NETWORK, NETWORK_START, assert_same, loop_counts, train

CPU = Device("cpu")


@pytest.fixture
def task(make_task):
    return make_task(
        **NETWORK,
        learning_rate=LearningRateAdam(eta0=0.05),
    )


@pytest.mark.parametrize("gradient", ["rules", pytest.param("ort", marks=pytest.mark.needs_training)])
def test_the_same_weights_and_states(gradient, task, samples):
    task = task.changed(gradient=gradient)
    assert packing.is_worth_packing(task) and len(samples) % 5
    expected_values, *expected = train(SingleGraphStep(task, CPU), samples, NETWORK_START, 5)
    values, *found = train(EpochStep(task, CPU), samples, NETWORK_START, 5)
    np.testing.assert_allclose(values, expected_values, rtol=1e-5)
    assert [len(arrays) for arrays in found] == [3, 3 * 4]
    assert_same(found, expected, rtol=1e-4, atol=1e-6)


def packable():
    """Every registered update that may be packed, with all of its states."""
    for info in plugins.list_plugins(plugins.LEARNING_RATES):
        rate = plugins.get(info.group, info.name)()
        if rate.elementwise and not rate.scales_gradient:
            options = {"momentum": 0.5, "centered": True} if info.name == "RMSprop" else {}
            yield pytest.param(rate.set_params(**options), id=info.name)


@pytest.mark.parametrize("rate", list(packable()))
def test_every_elementwise_update(rate, task, samples):
    task = task.changed(learning_rate=rate)
    assert packing.is_worth_packing(task)
    expected_values, *expected = train(SingleGraphStep(task, CPU), samples, NETWORK_START, 5)
    values, *found = train(EpochStep(task, CPU), samples, NETWORK_START, 5)
    np.testing.assert_allclose(values, expected_values, rtol=1e-4)
    assert_same(found, expected, rtol=1e-3, atol=1e-5)


def test_continued_from_states(task, samples):
    _, fresh, states = train(SingleGraphStep(task, CPU), samples, NETWORK_START, 5)
    _, expected, _ = train(SingleGraphStep(task, CPU), samples, NETWORK_START, 5, states=states)
    _, found, _ = train(EpochStep(task, CPU), samples, NETWORK_START, 5, states=states)
    np.testing.assert_allclose(found["first"], expected["first"], rtol=1e-4)
    assert np.abs(found["first"] - fresh["first"]).max() > 1e-3


def test_number_of_nodes(task):
    assert loop_counts(epoch_graph(task, 5, 0))["Sqrt"] == 1
    width = packing.MAX_ELEMENTS // 3 + 1
    wide = str(NETWORK["model"]).replace("dim_value: 3", f"dim_value: {width}")
    large = task.changed(model=text_format.Parse(wide, ModelProto()))
    assert loop_counts(epoch_graph(large, 5, 0))["Sqrt"] == 3


class NormedRate(LearningRateAdam):
    """A learning rate whose update is not elementwise."""

    elementwise = False


def test_weights_that_are_not_packed(task, make_task):
    assert packing.is_worth_packing(task)
    assert not packing.is_worth_packing(task.changed(learning_rate=NormedRate()))
    assert not packing.is_worth_packing(task.changed(learning_rate=LearningRateSGD()))
    assert not packing.is_worth_packing(make_task(learning_rate=LearningRateAdam()))
