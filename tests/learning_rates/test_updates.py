"""Updates equal their definitions in numpy, in float32 and float64."""

import numpy as np
import onnxruntime
import pytest
from sklearn.neural_network._stochastic_optimizers import SGDOptimizer

from ortlearn import plugins
from ortlearn.learning_rates import (
    BaseLearningRate,
    LearningRateAdam,
    LearningRateAdamW,
    LearningRateLion,
    LearningRateRMSprop,
    LearningRateSGD,
    LearningRateSGDNesterov,
)
from ortlearn.testing import check_learning_rate
from ortlearn.testing.updates import SHAPES, Updates
from tests.learning_rates.records import ALIASES, INVALID, SOLVERS, UPDATES
from tests.pairwise import pairwise


def make(name, params):
    return plugins.create(plugins.LEARNING_RATES, name, BaseLearningRate).set_params(**params)


ALL = [
    pytest.param(make(name, params), definition, id=f"{name}-{i}")
    for name, cases in UPDATES.items()
    for i, (params, definition) in enumerate(cases)
]


@pytest.fixture
def run():
    """Return a function that runs a model in a new session."""
    sessions = {}

    def run(model, feeds):
        key = model.SerializeToString()
        if key not in sessions:
            sessions[key] = onnxruntime.InferenceSession(key, providers=["CPUExecutionProvider"])
        return sessions[key].run(None, feeds)

    return run


def gradients_of(shape, count=12):
    rng = np.random.default_rng(0)
    return rng.normal(size=shape), rng.normal(size=(count, *shape)), rng.uniform(0.01, 0.2, size=count)


def updated(learning_rate, weight, gradients, rates, run):
    updates = Updates(learning_rate, weight, run)
    for gradient, rate in zip(gradients, rates, strict=True):
        updates.apply(gradient, rate)
    return updates


def test_every_learning_rate_has_a_record():
    infos = plugins.list_plugins(plugins.LEARNING_RATES)
    built_in = {info.name for info in infos if info.distribution == "ortlearn"}
    assert built_in == set(UPDATES) | set(SOLVERS) | set(ALIASES)
    assert set(INVALID) == set(UPDATES) | set(SOLVERS)
    for alias, name in ALIASES.items():
        assert plugins.get(plugins.LEARNING_RATES, alias) is plugins.get(plugins.LEARNING_RATES, name)


@pairwise(
    case=[pytest.param(param.values, id=param.id) for param in ALL],
    shape=SHAPES,
    dtype=[np.float32, np.float64],
)
def test_definition(run, case, shape, dtype):
    (learning_rate, definition), rtol = case, 1e-4 if dtype is np.float32 else 1e-10
    weight, gradients, rates = gradients_of(shape)
    got = updated(learning_rate, np.asarray(weight, dtype=dtype), gradients, rates, run)
    np.testing.assert_allclose(got.weight, definition(weight, gradients, rates), rtol=rtol, atol=rtol)


@pytest.mark.sweep(11)
@pytest.mark.parametrize("learning_rate, definition", ALL)
def test_check_learning_rate(learning_rate, definition):
    check_learning_rate(learning_rate)


@pytest.mark.parametrize("name, params", [(name, p) for name, cases in SOLVERS.items() for p in cases])
def test_check_solver(name, params):
    check_learning_rate(make(name, params))


def test_mean_of_lion(run):
    # its size has no effect on the update
    weight, gradients, rates = gradients_of((4, 3))
    got = updated(LearningRateLion(beta_2=0.8), weight, gradients, rates, run)
    expected = sum(0.2 * 0.8**age * g for age, g in enumerate(gradients[::-1]))
    np.testing.assert_allclose(got.state["mean"], expected, rtol=1e-12)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_equals_scikit_learns(run, nesterov):
    weight, gradients, _ = gradients_of((4, 3))
    theirs = [weight.copy()]
    optimizer = SGDOptimizer(theirs, 0.05, "constant", momentum=0.9, nesterov=nesterov)
    for gradient in gradients:
        optimizer.update_params(theirs, [gradient])
    ours = LearningRateSGDNesterov(nesterov=nesterov)
    got = updated(ours, weight, gradients, [0.05] * len(gradients), run)
    np.testing.assert_allclose(got.weight, theirs[0], rtol=1e-12)


@pytest.mark.parametrize("learning_rate", [LearningRateAdam(), LearningRateLion(), LearningRateAdamW()])
def test_size_of_first_step_equals_the_rate(run, learning_rate):
    for scale in (1e-3, 1.0, 1e3):
        got = updated(learning_rate, np.zeros(2), [scale * np.array([1.0, -1.0])], [0.1], run)
        np.testing.assert_allclose(got.weight, [-0.1, 0.1], rtol=1e-4)


@pytest.mark.slow
def test_zero_gradient_does_not_change_the_weight(run):
    weight = np.array([1.0, -2.0])
    for name, cases in UPDATES.items():
        if name in ("AdamW", "Lion"):  # with weight decay
            continue
        for params, _ in cases:
            got = updated(make(name, params), weight, np.zeros((3, 2)), [0.1] * 3, run)
            np.testing.assert_array_equal(got.weight, weight)


def test_variance_rounded_below_zero(run):
    # With equal gradients the variance is zero, and its rounded value may be negative.
    weight = np.zeros(50, dtype=np.float32)
    gradients = [np.linspace(0.1, 7, 50)] * 200
    got = updated(LearningRateRMSprop(centered=True, rho=0.5), weight, gradients, [1e-3] * 200, run)
    assert np.isfinite(got.weight).all()


def test_names_of_states_are_descriptive():
    weight = np.ones((2, 2), dtype=np.float32)
    states = {name: set(make(name, {}).init(weight)) for name in UPDATES}
    assert states["SGD"] == set()
    assert states["Adam"] == states["AdamW"] == {"mean", "square", "power_1", "power_2"}
    assert states["RMSprop"] == {"square"} and states["Lion"] == {"mean"}
    assert set(make("RMSprop", {"momentum": 0.5, "centered": True}).init(weight)) == {
        "mean",
        "square",
        "step",
    }
    # A sum of squares must not be continued as a mean of squares.
    assert not states["Adagrad"] & states["Adam"]


def test_attributes():
    scaled = {name for name in UPDATES if make(name, {}).scales_gradient}
    assert scaled == {"SGD", "SGDNesterov"}
    assert all(make(name, {}).elementwise for name in UPDATES)
    assert LearningRateSGD().full_batch is False
