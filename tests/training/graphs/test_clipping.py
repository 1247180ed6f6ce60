"""Clipped gradients: by value and by norm, in every step, against numpy."""

import math

import numpy as np
import pytest
from onnx import helper

from ortlearn.data.samples import Data
from ortlearn.graphs import GraphBuilder, TensorType, make_value_info
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import L1Penalty, L2Penalty
from ortlearn.runtime.devices import Device
from ortlearn.training.graphs.clipping import clip_gradients
from ortlearn.training.loop import run_training
from ortlearn.training.optimisations.packing import is_worth_packing
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_graph import epoch_graph
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep
from tests.pairwise import pairwise
from tests.training.examples import NETWORK, NETWORK_START, linear_start, loop_counts, train

CPU = Device("cpu")
ORT = pytest.param("ort", marks=pytest.mark.needs_training)
RTOL = {"float32": 1e-6, "float64": 1e-13}
SHAPES = [(2, 3), (3,), ()]


def clipped(arrays, dtype, run_onnx, **bounds):
    """Return clipped gradients."""
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    arrays = {f"g{i}": np.asarray(array, dtype) for i, array in enumerate(arrays)}
    op = GraphBuilder(dtype=dtype, existing_names=arrays)
    names = clip_gradients(op, {name: name for name in arrays}, **bounds)
    infos = {name: TensorType(elem_type, array.shape) for name, array in arrays.items()}
    graph = helper.make_graph(
        [*op.nodes, *(helper.make_node("Identity", [names[name]], [f"{name}_after"]) for name in arrays)],
        "clipping",
        [make_value_info(name, info) for name, info in infos.items()],
        [make_value_info(f"{name}_after", info) for name, info in infos.items()],
        op.initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", op.opset)], ir_version=10)
    return run_onnx(model, **arrays)


def expected_clipped(arrays, clip_value=None, clip_norm=None):
    """Return clipped gradients by the definition, in float64."""
    arrays = [np.asarray(array, np.float64) for array in arrays]
    if clip_value is not None:
        arrays = [np.minimum(np.maximum(array, -clip_value), clip_value) for array in arrays]
    if clip_norm is not None:
        norm = math.hypot(*np.concatenate([array.ravel() for array in arrays]))
        arrays = [array * (1 if norm <= clip_norm else clip_norm / norm) for array in arrays]
    return arrays


BOUNDS = {
    "value": {"clip_value": 0.3},
    "norm": {"clip_norm": 0.7},
    "both": {"clip_value": 0.5, "clip_norm": 0.8},
}


@pytest.mark.parametrize("dtype", list(RTOL))
@pytest.mark.parametrize("bounds", list(BOUNDS))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_definition(dtype, bounds, count, run_onnx):
    rng = np.random.RandomState(0)
    arrays = [rng.normal(size=shape).astype(dtype) for shape in SHAPES[:count]]
    expected = expected_clipped(arrays, **BOUNDS[bounds])
    found = clipped(arrays, dtype, run_onnx, **BOUNDS[bounds])
    for own, array, before in zip(found, expected, arrays, strict=True):
        assert own.dtype == dtype and own.shape == before.shape
        np.testing.assert_allclose(own, array.astype(dtype), rtol=RTOL[dtype])
    assert any(np.abs(own - before).max() > 0.1 for own, before in zip(found, arrays, strict=True))


@pytest.mark.parametrize("dtype", list(RTOL))
@pytest.mark.parametrize("bounds", [{}, {"clip_value": 9.0}, {"clip_norm": 9.0}, {"clip_norm": 1e30}])
def test_gradients_within_the_bound_do_not_change(dtype, bounds, run_onnx):
    rng = np.random.RandomState(0)
    arrays = [rng.normal(size=shape).astype(dtype) for shape in SHAPES]
    for own, before in zip(clipped(arrays, dtype, run_onnx, **bounds), arrays, strict=True):
        np.testing.assert_array_equal(own, before)


def test_no_nodes_without_bounds():
    op = GraphBuilder()
    assert clip_gradients(op, {"a": "b"}) == {"a": "b"} and not op.nodes


@pytest.mark.parametrize("dtype", list(RTOL))
@pytest.mark.parametrize("bound", [1e-3, 1.0, 1e3])
def test_zero_tiny_and_huge_gradients(dtype, bound, run_onnx):
    limits = np.finfo(dtype)
    for scale in (0.0, limits.smallest_subnormal * 8, limits.tiny, 1.0, limits.max / 4):
        arrays = [np.array([[1.0, -2.0]]) * scale, np.array([0.5]) * scale]
        expected = expected_clipped([np.asarray(array, dtype) for array in arrays], clip_norm=bound)
        for own, array in zip(clipped(arrays, dtype, run_onnx, clip_norm=bound), expected, strict=True):
            # for the largest gradients, the factor itself has few digits
            np.testing.assert_allclose(own, array.astype(dtype), rtol=1e-3 if scale > 1 else RTOL[dtype])


@pytest.mark.parametrize("dtype", list(RTOL))
@pytest.mark.parametrize("bounds", list(BOUNDS))
def test_nan_is_not_hidden(dtype, bounds, run_onnx):
    (found,) = clipped([np.array([1.0, np.nan, 2.0])], dtype, run_onnx, **BOUNDS[bounds])
    assert np.isnan(found[1])
    (found,) = clipped([np.array([1.0, np.inf, 2.0])], dtype, run_onnx, clip_norm=1.0)
    assert not np.isfinite(found).all()


class NumpyUpdate:
    """The tested updates of one weight, in numpy."""

    def __init__(self, rate, learning_rate):
        self.rate, self.kind, self.momentum = rate, learning_rate, getattr(learning_rate, "momentum", 0.0)
        self.first, self.second, self.count = 0.0, 0.0, 0

    def __call__(self, weight, gradient):
        if isinstance(self.kind, LearningRateAdam):
            self.count += 1
            self.first = 0.9 * self.first + 0.1 * gradient
            self.second = 0.999 * self.second + 0.001 * gradient**2
            mean, square = self.first / (1 - 0.9**self.count), self.second / (1 - 0.999**self.count)
            return weight - self.rate * mean / (np.sqrt(square) + 1e-8)
        self.first = self.momentum * self.first - self.rate * gradient
        if getattr(self.kind, "nesterov", False):
            return weight + self.momentum * self.first - self.rate * gradient
        return weight + self.first


def numpy_training(task, data, start, rate, size, n_epochs, proximal=lambda w: w):
    """Return the weights after some epochs without shuffling, in float64."""
    weights = {name: array.astype(np.float64) for name, array in start.items()}
    updates = {name: NumpyUpdate(rate, task.update.learning_rate) for name in weights}
    X, y = data.X.astype(np.float64), data.y.astype(np.float64)
    l2 = getattr(task.objective.penalty, "l2", 0.0)
    for _ in range(n_epochs):
        for first in range(0, len(X), size):
            samples = X[first : first + size]
            error = (samples @ weights["coef"] + weights["intercept"] - y[first : first + size]) / len(
                samples
            )
            gradients = [samples.T @ error + 2 * l2 * weights["coef"], error.sum(axis=0)]
            gradients = expected_clipped(gradients, task.update.clip_value, task.update.clip_norm)
            for name, gradient in zip(("coef", "intercept"), gradients, strict=True):
                weights[name] = updates[name](weights[name], gradient)
            weights["coef"] = proximal(weights["coef"])
    return weights


def trained_weights(step_class, task, data, start):
    return train(step_class(task, CPU), data, start, 5)[1]


RATES = {
    "SGD": LearningRateSGD(),
    "momentum": LearningRateSGDNesterov(nesterov=False),
    "Nesterov": LearningRateSGDNesterov(),
    "Adam": LearningRateAdam(),
}


@pytest.mark.sweep(10)
@pairwise(
    indirect=["any_step_class"],
    any_step_class=["epoch", "one_graph", "two_calls"],
    rate=RATES,
    bounds=BOUNDS,
    dtype=RTOL,
)
def test_every_step_against_numpy(rate, bounds, dtype, any_step_class, make_linear, make_samples):
    task = make_linear(dtype, learning_rate=RATES[rate], gradient="rules", **BOUNDS[bounds])
    data, start = make_samples(dtype), linear_start(dtype)
    expected = numpy_training(task, data, start, 0.05, 5, 3)
    found = trained_weights(any_step_class, task, data, start)
    free = trained_weights(any_step_class, task.changed(clip_value=None, clip_norm=None), data, start)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=20 * RTOL[dtype], err_msg=name)
    assert max(np.abs(free[name] - found[name]).max() for name in found) > 1e-2


@pairwise(
    indirect=["any_step_class"],
    any_step_class=["epoch", "one_graph", "two_calls"],
    rate=["SGD", "Adam"],
    dtype=RTOL,
)
def test_gradient_of_the_penalty_is_clipped(rate, dtype, any_step_class, make_linear, make_samples):
    bounds = {"clip_value": 1.5, "clip_norm": 1.8}
    penalty = L2Penalty(0.4)
    task = make_linear(dtype, learning_rate=RATES[rate], penalty=penalty, **bounds)
    data, start = make_samples(dtype), linear_start(dtype)
    expected = numpy_training(task, data, start, 0.05, 5, 3)
    found = trained_weights(any_step_class, task, data, start)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=20 * RTOL[dtype], err_msg=name)


def test_the_proximal_step_is_not_clipped(any_step_class, make_linear, make_samples):
    task = make_linear("float64", learning_rate=LearningRateSGD(), penalty=L1Penalty(0.4), clip_norm=0.7)
    assert task.is_proximal
    data, start = make_samples("float64"), linear_start("float64")

    def shrink(coef):
        return np.sign(coef) * np.maximum(np.abs(coef) - 0.05 * 0.4, 0)

    expected = numpy_training(task, data, start, 0.05, 5, 3, shrink)
    found = trained_weights(any_step_class, task, data, start)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-12, err_msg=name)


def test_the_rate_is_not_in_the_gradient(make_linear):
    task = make_linear(learning_rate=LearningRateSGD())
    assert task.folds_rate and not task.changed(clip_value=1.0).folds_rate
    assert not task.changed(clip_norm=1.0).folds_rate
    assert not task.changed(learning_rate=LearningRateAdam()).folds_rate


def test_large_bounds_change_nothing(any_step_class, make_linear, make_samples):
    task = make_linear("float64", learning_rate=LearningRateSGDNesterov())
    data, start = make_samples("float64"), linear_start("float64")
    expected = trained_weights(any_step_class, task, data, start)
    found = trained_weights(any_step_class, task.changed(clip_value=1e9, clip_norm=1e9), data, start)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-12)


@pairwise(rate=RATES, gradient=["rules", ORT])
def test_weights_as_one_vector(rate, gradient, make_task, make_samples):
    task = make_task(
        **NETWORK,
        learning_rate=RATES[rate],
        gradient=gradient,
        clip_norm=0.5,
        clip_value=0.4,
    )
    assert is_worth_packing(task)
    expected = trained_weights(SingleGraphStep, task, make_samples(), NETWORK_START)
    found = trained_weights(EpochStep, task, make_samples(), NETWORK_START)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, err_msg=name)
        assert np.abs(array - NETWORK_START[name]).max() > 1e-2


def test_one_norm_for_all_weights(make_linear):
    task = make_linear(learning_rate=LearningRateAdam(), clip_norm=1.0)
    assert loop_counts(epoch_graph(task, 5, 0))["ReduceMax"] == 1


def test_trainings_with_different_bounds_share_no_graph(make_linear):
    tasks = [make_linear(**bounds) for bounds in ({}, {"clip_norm": 1.0}, {"clip_value": 1.0})]
    tasks.append(make_linear(clip_norm=2.0))
    assert len({task.graph_key() for task in tasks}) == 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pairwise(rate=["SGD", "Nesterov", "Adam"], bounds=BOUNDS, size=[5, 23])
def test_a_divergence_is_replayed(rate, bounds, size, make_linear, make_samples):
    eta0 = 1e25 if rate == "SGD" else 1e19
    learning_rate = RATES[rate].__class__(eta0=eta0, learning_rate="constant")
    task = make_linear(learning_rate=learning_rate, **BOUNDS[bounds])
    settings = LoopSettings(max_iter=4, batch_size=size, exc=False)
    results = [
        run_training(step(task, CPU), make_samples(), TrainingState(linear_start("float32")), settings)
        for step in (SingleGraphStep, EpochStep)
    ]
    assert results[0].n_iter == results[1].n_iter < 4
    for name, array in results[0].weights.items():
        assert np.isfinite(array).all()
        np.testing.assert_allclose(results[1].weights[name], array, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("bad", [0, 7, 22])
@pytest.mark.parametrize("rate", ["SGD", "Adam"])
def test_a_bad_label_stops_the_epoch(bad, rate, any_step_class, make_linear, make_samples):
    data, start = make_samples(), linear_start("float32")
    data.y[bad] = np.nan
    task = make_linear(learning_rate=RATES[rate], clip_norm=0.5, clip_value=0.4)
    step = any_step_class(task, CPU)
    buffers = step.start(data, [5, 3], start)
    step.set_rate(0.05)
    values = step.run_epoch(np.arange(23), 5, buffers)
    assert len(values) == bad // 5 + 1 and not np.isfinite(values[-1])
    kept = max(bad // 5 - 1, 0) * 5  # the weights of the last finite objective
    expected = numpy_training(task, Data(data.X[:kept], data.y[:kept]), start, 0.05, 5, 1)
    for name, array in expected.items():
        np.testing.assert_allclose(buffers.read()[name, None], array, rtol=2e-5)
