"""Averaged SGD: the mean of the weights after each update, in every step."""

import pickle
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from onnx import parser
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor

from ortlearn.data.samples import Data
from ortlearn.exceptions import PluginError
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import (
    AdaptiveSchedule,
    LearningRateAdam,
    LearningRateRMSprop,
    LearningRateSGD,
    LearningRateSGDNesterov,
    Rates,
)
from ortlearn.penalties import L1Penalty, MaxNormPenalty, NoPenalty
from ortlearn.runtime.devices import Device
from ortlearn.training.graphs.averaging import Averaged, averages
from ortlearn.training.loop import run_training
from ortlearn.training.optimisations.packing import is_worth_packing
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_graph import batch_graph
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.pairwise import pairwise
from tests.training.examples import NETWORK, NETWORK_START, linear_start, train

CPU = Device("cpu")
RTOL = {"float32": 1e-6, "float64": 1e-13}
RATES = {
    "SGD": LearningRateSGD(),
    "Nesterov": LearningRateSGDNesterov(),
    "Adam": LearningRateAdam(),
    "RMSprop": LearningRateRMSprop(),
}


def mean_of_path(task, data, start, size, begin, *, rate=0.05, n_epochs=3):
    """Return the mean of the weights after each update, from a training batch by batch."""
    learning_rate = task.update.learning_rate
    if isinstance(learning_rate, Averaged):
        learning_rate = learning_rate.learning_rate
    step = SingleGraphStep(task.changed(learning_rate=learning_rate), CPU)
    buffers = step.start(data, [size] + ([len(data) % size] if len(data) % size else []), start)
    step.set_rate(rate)
    path = []
    for _ in range(n_epochs):
        for first in range(0, len(data), size):
            step.run(np.arange(first, min(first + size, len(data))), buffers)
            buffers.advance()
            path.append({name: buffers.read()[name, None] for name in start})
    counted = path[begin - 1 :] or path[-1:]
    return {name: np.mean([w[name] for w in counted], axis=0, dtype=np.float64) for name in start}


@pairwise(
    indirect=["any_step_class"],
    begin=[1, 7, 40, 1000],
    any_step_class=["epoch", "one_graph", "two_calls"],
    dtype=RTOL,
)
def test_averages_equal_scikit_learns(dtype, begin, any_step_class, make_linear, make_samples):
    data = make_samples(dtype)
    reference = SGDRegressor(
        average=begin, penalty=None, shuffle=False, learning_rate="constant", eta0=0.02, max_iter=3, tol=None
    ).fit(data.X.astype(np.float64), data.y.ravel())
    learning_rate = Averaged(LearningRateSGD(eta0=0.02, learning_rate="constant"), begin)
    step = any_step_class(make_linear(dtype, learning_rate=learning_rate), CPU)
    start = {name: 0 * array for name, array in linear_start(dtype).items()}
    settings = LoopSettings(max_iter=3, batch_size=1, shuffle=False)
    result = run_training(step, data, TrainingState(start), settings)
    means = averages(result.states, result.updated)
    rtol = 10 * RTOL[dtype]
    np.testing.assert_allclose(means["coef"].ravel(), reference.coef_, rtol=rtol)
    np.testing.assert_allclose(means["intercept"], reference.intercept_, rtol=rtol)
    np.testing.assert_array_equal(result.weights["coef"], means["coef"])
    far = np.abs(result.updated["coef"] - means["coef"]).max()
    assert far == 0 if begin == 1000 else far > 1e-2  # of sixty-nine updates


@pairwise(
    indirect=["any_step_class"],
    rate=RATES,
    begin=[1, 4, 20],
    any_step_class=["epoch", "one_graph", "two_calls"],
)
def test_mean_of_the_weights_after_each_update(rate, begin, any_step_class, make_linear, make_samples):
    task = make_linear("float64", learning_rate=Averaged(RATES[rate], begin))
    data, start = make_samples("float64"), linear_start("float64")
    expected = mean_of_path(task, data, start, 5, begin)
    _, weights, states = train(any_step_class(task, CPU), data, start, 5)
    means = averages(states, weights)
    for name, array in expected.items():
        np.testing.assert_allclose(means[name], array, rtol=1e-12)
        if begin < 15:  # of fifteen updates
            assert np.abs(means[name] - weights[name]).max() > 1e-4
        else:
            np.testing.assert_array_equal(means[name], weights[name])


def test_averaging_does_not_change_updates(any_step_class, make_linear, make_samples):
    for rate in RATES.values():
        task = make_linear("float64", learning_rate=rate)
        _, expected, own = train(
            any_step_class(task, CPU), make_samples("float64"), linear_start("float64"), 5
        )
        averaged = task.changed(learning_rate=Averaged(rate, 3))
        _, found, states = train(
            any_step_class(averaged, CPU), make_samples("float64"), linear_start("float64"), 5
        )
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-12)
        for key, array in own.items():
            np.testing.assert_allclose(states[key], array, rtol=1e-12)
        assert len(states) == len(own) + 2 * 2


@pytest.mark.parametrize("penalty", [L1Penalty(0.8), MaxNormPenalty(0.4)], ids=["l1", "max_norm"])
def test_weights_are_averaged_after_the_proximal_step(penalty, any_step_class, make_linear, make_samples):
    learning_rate = Averaged(LearningRateSGDNesterov(momentum=0.5), 2)
    task = make_linear("float64", learning_rate=learning_rate, penalty=penalty, clip_norm=5.0)
    assert task.is_proximal and task.update.learning_rate.proximal_scale == 2.0
    data, start = make_samples("float64"), linear_start("float64")
    expected = mean_of_path(task, data, start, 5, 2)
    without = mean_of_path(task.changed(penalty=NoPenalty()), data, start, 5, 2)
    _, weights, states = train(any_step_class(task, CPU), data, start, 5)
    for name, array in averages(states, weights).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-12)
    assert np.abs(expected["coef"] - without["coef"]).max() > 0.1


@pytest.mark.parametrize("begin", [1, 4])
@pytest.mark.parametrize("rate, bound", [("Adam", None), ("RMSprop", 0.5), ("SGD", 0.5)])
def test_weights_as_one_vector(rate, bound, begin, make_task, make_samples):
    task = make_task(
        **NETWORK,
        learning_rate=Averaged(RATES[rate], begin),
        clip_norm=bound,
    )
    assert is_worth_packing(task)
    expected = mean_of_path(task, make_samples(), NETWORK_START, 5, begin)
    _, weights, states = train(EpochStep(task, CPU), make_samples(), NETWORK_START, 5)
    _, _, separate = train(SingleGraphStep(task, CPU), make_samples(), NETWORK_START, 5)
    assert states.keys() == separate.keys()
    for key, array in separate.items():
        assert (states[key].shape, states[key].dtype) == (array.shape, array.dtype)
    for name, array in averages(states, weights).items():
        assert array.dtype == np.float32 and array.shape == NETWORK_START[name].shape
        np.testing.assert_allclose(array, expected[name], rtol=1e-4)


class FourBatchesStep(EpochStep):
    """EpochStep with four batches per iteration, for epochs of any length."""

    min_iterations: ClassVar = {4: 1}


def test_several_batches_in_an_iteration(make_linear, make_samples):
    task = make_linear("float64", learning_rate=Averaged(LearningRateSGD(), 3))
    expected = mean_of_path(task, make_samples("float64"), linear_start("float64"), 2, 3)
    _, weights, states = train(
        FourBatchesStep(task, CPU), make_samples("float64"), linear_start("float64"), 2
    )
    for name, array in averages(states, weights).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-12)


def test_rows_of_a_table(make_task):
    """A batch updates few rows of a table, but all of them are averaged."""
    graph = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (int64[N] x, float[6,1] table) => (float[N,1] score) { score = Gather <axis = 0> (table, x) }""")
    task = make_task(
        model=graph,
        features={"x": TensorType(7, (None,))},
        intercepts={"table": False},
        learning_rate=Averaged(LearningRateSGD(), 2),
        gradient="rules",
    )
    kinds = [node.op_type for node in batch_graph(task, 2).model.graph.node]
    assert kinds.count("ScatterElements") == 1 and "Sub" not in kinds[kinds.index("ScatterElements") :]
    start = {"table": np.arange(6, dtype=np.float32)[:, None]}
    data = Data(np.array([0, 1, 1, 3, 0, 4, 4, 4]), np.linspace(-1, 1, 8, dtype=np.float32)[:, None])
    expected = mean_of_path(task, data, start, 2, 2, rate=0.3)
    _, weights, states = train(EpochStep(task, CPU), data, start, 2, rate=0.3)
    found = averages(states, weights)["table"]
    np.testing.assert_allclose(found, expected["table"], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found[[2, 5]], start["table"][[2, 5]])
    assert np.abs(found - weights["table"])[[0, 1, 3, 4]].min() > 1e-3


@pytest.mark.parametrize("begin", [1, 5, 12])
def test_continued_from_states(begin, any_step_class, make_linear, make_samples):
    task = make_linear("float64", learning_rate=Averaged(LearningRateAdam(), begin))
    data, start = make_samples("float64"), linear_start("float64")
    step = any_step_class(task, CPU)
    expected = averages(*train(step, data, start, 5, n_epochs=4)[:0:-1])
    _, weights, states = train(step, data, start, 5, n_epochs=1)
    _, weights, states = train(step, data, weights, 5, n_epochs=3, states=states)
    for name, array in averages(states, weights).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-12)


def test_averages_after_many_updates(make_linear, make_samples):
    """In float32, counts would stop at 2 ** 24, and sums would ignore small terms."""
    task = make_linear(learning_rate=Averaged(LearningRateSGD()))
    data, start, many = make_samples(), linear_start("float32"), 2.0**26
    states = {(name, "averaged_sum"): array * many for name, array in start.items()}
    states |= {(name, "averaged_count"): np.array(many) for name in start}
    _, weights, states = train(EpochStep(task, CPU), data, start, 1, n_epochs=2, states=states)
    for name, array in weights.items():
        assert states[name, "averaged_count"] == many + 46
        gained = states[name, "averaged_sum"] - start[name] * many
        path = mean_of_path(task, data, start, 1, 1, n_epochs=2)[name]
        np.testing.assert_allclose(gained / 46, path, rtol=1e-5)
        assert not np.array_equal(array, start[name])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pairwise(settled=[("SGD", 1e3), ("SGD", 1e12), ("Adam", 1e19)], size=[5, 23], sparse=[False, True])
def test_a_divergence_is_replayed(settled, size, sparse, make_linear, make_samples):
    rate, eta0 = settled
    learning_rate = RATES[rate].__class__(eta0=eta0, learning_rate="constant")
    task = make_linear(learning_rate=Averaged(learning_rate))
    samples = make_samples()
    data = Data(scipy.sparse.csr_matrix(samples.X), samples.y) if sparse else samples
    settings = LoopSettings(max_iter=9, batch_size=size, exc=False)
    found = []
    for step_class in (SingleGraphStep, EpochStep):
        step = step_class(task, CPU)
        found.append(run_training(step, data, TrainingState(linear_start("float32")), settings))
    assert found[0].n_iter == found[1].n_iter
    for name, array in found[0].weights.items():
        assert np.isfinite(array).all()
        assert found[0].states[name, "averaged_count"] == found[1].states[name, "averaged_count"]
        np.testing.assert_allclose(found[1].weights[name], array, rtol=1e-4)


def test_attributes_of_the_wrapped_learning_rate():
    for rate in RATES.values():
        averaged = Averaged(rate, 2)
        for name in ("scales_gradient", "elementwise", "full_batch", "proximal_scale"):
            assert getattr(averaged, name) == getattr(rate, name)
        assert averaged.graph_key() != rate.graph_key()
    rate = LearningRateSGD(eta0=0.1, learning_rate=AdaptiveSchedule())
    own, wrapped = Rates(rate), Rates(Averaged(rate))
    for epoch, loss in enumerate([1.0, 0.5, 0.5, 0.5, 0.5, 0.5]):
        assert wrapped.of(epoch) == own.of(epoch)
        own.note(loss)
        wrapped.note(loss)
    assert own.of(6) < 0.1


def test_estimator():
    averaged = Averaged(LearningRateAdam(beta_1=0.5), begin=9)
    for other in (clone(averaged), pickle.loads(pickle.dumps(averaged))):
        assert other.get_params()["learning_rate__beta_1"] == 0.5
        assert other.graph_key() == averaged.graph_key()
    averaged.check()
    with pytest.raises(PluginError, match="begin=0"):
        Averaged(LearningRateAdam(), begin=0).check()
    with pytest.raises(PluginError, match="beta_1"):
        Averaged(LearningRateAdam(beta_1=2.0)).check()


def test_graphs_are_shared_whenever_averaging_begins(make_linear):
    rates = [Averaged(LearningRateSGD(eta0=eta0), begin) for eta0, begin in [(1, 1), (2, 1), (1, 2), (1, 9)]]
    keys = [make_linear(learning_rate=rate).graph_key() for rate in rates]
    assert keys[0] == keys[1] != keys[2] == keys[3]
