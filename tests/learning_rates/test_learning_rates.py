"""Learning rates: updates against numpy and scikit-learn, schedules, parameters. One record each."""

import math

import numpy as np
import pytest
from onnx import checker, helper
from sklearn.linear_model import SGDRegressor
from sklearn.neural_network._stochastic_optimizers import SGDOptimizer

from ortlearn import plugins
from ortlearn.exceptions import PluginError, UnknownPluginError
from ortlearn.graphs import GraphBuilder
from ortlearn.learning_rates import (
    BaseLearningRate,
    LearningRateAdam,
    LearningRateSGD,
    LearningRateSGDNesterov,
    resolve_learning_rate,
)

SHAPES = [(4, 3), (3,), ()]


def sgd(w, gradients, rates):
    for g, rate in zip(gradients, rates, strict=True):
        w = w - rate * g
    return w


def momentum(w, gradients, rates, momentum=0.9, nesterov=True):
    v = np.zeros_like(w)
    for g, rate in zip(gradients, rates, strict=True):
        v = momentum * v - rate * g
        w = w + (momentum * v - rate * g if nesterov else v)
    return w


def adam(w, gradients, rates, beta_1=0.9, beta_2=0.999, epsilon=1e-8):
    m = v = np.zeros_like(w)
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        w = w - rate * (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
    return w


#: Learning rates by name: objects, and the same update in numpy.
CASES = {
    "SGD": [(LearningRateSGD(), sgd)],
    "SGDNesterov": [
        (LearningRateSGDNesterov(), momentum),
        (LearningRateSGDNesterov(nesterov=False), lambda *a: momentum(*a, nesterov=False)),
        (LearningRateSGDNesterov(momentum=0.5), lambda *a: momentum(*a, momentum=0.5)),
        (LearningRateSGDNesterov(momentum=0.0), sgd),
    ],
    "Adam": [
        (LearningRateAdam(), adam),
        (
            LearningRateAdam(beta_1=0.5, beta_2=0.9, epsilon=0.1),
            lambda *a: adam(*a, beta_1=0.5, beta_2=0.9, epsilon=0.1),
        ),
        (LearningRateAdam(beta_1=0.0, beta_2=0.0), lambda *a: adam(*a, beta_1=0.0, beta_2=0.0)),
    ],
}
ALIASES = {"Nesterov": "SGDNesterov"}
ALL = [pytest.param(*case, id=f"{name}-{i}") for name, cases in CASES.items() for i, case in enumerate(cases)]


def run_updates(learning_rate, weight, gradients, rates, run_onnx):
    """Apply the update graph once per gradient, and return the last weight and state."""
    dtype = weight.dtype
    elem_type = helper.np_dtype_to_tensor_dtype(dtype)
    state = learning_rate.init(weight)
    op = GraphBuilder(dtype=dtype)
    new, new_state = learning_rate.update(op, "w", "g", {key: f"state_{key}" for key in state}, "rate")
    assert set(new_state) == set(state)

    def info(name, shape):
        return helper.make_tensor_value_info(name, elem_type, shape)

    inputs = [info("w", weight.shape), info("g", weight.shape), info("rate", ())]
    inputs += [info(f"state_{key}", value.shape) for key, value in state.items()]
    outputs = [info(new, weight.shape), *(info(new_state[key], state[key].shape) for key in state)]
    graph = helper.make_graph(op.nodes, "g", inputs, outputs, op.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    checker.check_model(model, full_check=True)
    for g, rate in zip(gradients, rates, strict=True):
        feeds = {f"state_{key}": value for key, value in state.items()}
        weight, *values = run_onnx(
            model, w=np.asarray(weight), g=np.asarray(g, dtype), rate=np.array(rate, dtype), **feeds
        )
        state = dict(zip(state, values, strict=True))
    return weight, state


def steps(shape, count=12):
    rng = np.random.default_rng(0)
    return rng.normal(size=shape), rng.normal(size=(count, *shape)), rng.uniform(0.01, 0.2, size=count)


def test_every_built_in_learning_rate_has_a_record():
    infos = plugins.list_plugins(plugins.LEARNING_RATES)
    built_in = {info.name for info in infos if info.distribution == "ortlearn"}
    assert built_in == set(CASES) | set(ALIASES)
    for name, cases in CASES.items():
        assert all(type(obj) is plugins.get(plugins.LEARNING_RATES, name) for obj, _ in cases)
    for alias, name in ALIASES.items():
        assert plugins.get(plugins.LEARNING_RATES, alias) is plugins.get(plugins.LEARNING_RATES, name)


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 1e-4), (np.float64, 1e-10)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("learning_rate, definition", ALL)
def test_updates(run_onnx, learning_rate, definition, shape, dtype, rtol):
    weight, gradients, rates = steps(shape)
    got, state = run_updates(learning_rate, np.asarray(weight, dtype=dtype), gradients, rates, run_onnx)
    np.testing.assert_allclose(got, definition(weight, gradients, rates), rtol=rtol, atol=rtol)
    assert got.dtype == dtype and all(value.dtype == dtype for value in state.values())


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_scikit_learns(run_onnx, nesterov):
    weight, gradients, _ = steps((4, 3))
    theirs = [weight.copy()]
    optimizer = SGDOptimizer(theirs, 0.05, "constant", momentum=0.9, nesterov=nesterov)
    for gradient in gradients:
        optimizer.update_params(theirs, [gradient])
    ours = LearningRateSGDNesterov(eta0=0.05, learning_rate="constant", nesterov=nesterov)
    rates = [ours.rate(epoch) for epoch in range(len(gradients))]
    got, _ = run_updates(ours, weight, gradients, rates, run_onnx)
    np.testing.assert_allclose(got, theirs[0], rtol=1e-12)


def test_the_first_step_of_adam_has_the_length_of_the_rate(run_onnx):
    for scale in (1e-3, 1.0, 1e3):
        got, _ = run_updates(
            LearningRateAdam(), np.zeros(2), [scale * np.array([1.0, -1.0])], [0.1], run_onnx
        )
        np.testing.assert_allclose(got, [-0.1, 0.1], rtol=1e-4)


def test_states_are_new_arrays():
    weight = np.ones((2, 2), dtype=np.float32)
    for learning_rate in (LearningRateAdam(), LearningRateSGDNesterov()):
        arrays = list(learning_rate.init(weight).values())
        assert all(array.dtype == np.float32 for array in arrays)
        assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in [weight, *arrays[:i]])
    assert LearningRateSGD().init(weight) == {}


@pytest.mark.parametrize("make", [LearningRateSGD, LearningRateSGDNesterov, LearningRateAdam])
def test_schedules(make):
    epochs = range(5)
    assert [make(eta0=0.3, learning_rate="constant").rate(e) for e in epochs] == [0.3] * 5
    inverse = make(eta0=0.3, power_t=0.5, learning_rate="invscaling")
    np.testing.assert_allclose([inverse.rate(e) for e in epochs], [0.3 / math.sqrt(e + 1) for e in epochs])
    # scikit-learn: 1 / (alpha * (t0 + t)), where the first rate is the typical size of a weight
    alpha = 0.01
    optimal = make(alpha=alpha, learning_rate="optimal")
    t0 = 1 / (math.sqrt(1 / math.sqrt(alpha)) * alpha)
    np.testing.assert_allclose([optimal.rate(e) for e in epochs], [1 / (alpha * (t0 + e)) for e in epochs])
    np.testing.assert_allclose(optimal.rate(0), math.sqrt(10))


def test_one_epoch_of_one_row_is_scikit_learns():
    for schedule in ("constant", "invscaling", "optimal"):
        theirs = SGDRegressor(
            learning_rate=schedule,
            eta0=0.1,
            alpha=0.01,
            penalty=None,
            max_iter=1,
            tol=None,
            fit_intercept=False,
        ).fit([[1.0]], [1.0])
        rate = LearningRateSGD(eta0=0.1, alpha=0.01, learning_rate=schedule).rate(0)
        np.testing.assert_allclose(rate * 1.0, theirs.coef_[0], rtol=1e-9)


def test_defaults():
    params = {"eta0": 0.01, "alpha": 0.0001, "power_t": 0.25, "learning_rate": "invscaling"}
    assert LearningRateSGD().get_params() == params
    assert LearningRateSGDNesterov().get_params() == {**params, "momentum": 0.9, "nesterov": True}
    adam_params = LearningRateAdam().get_params()
    assert {k: adam_params[k] for k in ("eta0", "beta_1", "beta_2", "epsilon", "learning_rate")} == {
        "eta0": 0.001,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "epsilon": 1e-8,
        "learning_rate": "constant",
    }


BAD = [math.nan, math.inf, -1.0, "fast", None, True, [0.1], np.array([0.1])]


@pytest.mark.parametrize(
    "make, parameter, values",
    [
        (LearningRateSGD, "eta0", [0.0, *BAD]),
        (LearningRateSGD, "alpha", BAD),
        (LearningRateSGD, "power_t", [math.nan, "fast", None]),
        (LearningRateSGD, "learning_rate", ["adaptive", None, 3, ["constant"]]),
        (LearningRateSGDNesterov, "momentum", [1.0, *BAD]),
        (LearningRateAdam, "beta_1", [1.0, *BAD]),
        (LearningRateAdam, "beta_2", [1.0, *BAD]),
        (LearningRateAdam, "epsilon", [0.0, *BAD]),
    ],
)
def test_parameters_that_make_no_sense(make, parameter, values):
    for value in values:
        with pytest.raises(PluginError, match=rf"{make.__name__}: {parameter}="):
            resolve_learning_rate(make(**{parameter: value}))


def test_alpha_counts_in_one_schedule_only():
    resolve_learning_rate(LearningRateSGD(alpha=0.0))
    with pytest.raises(PluginError, match="alpha=0.0 must be"):
        resolve_learning_rate(LearningRateSGD(alpha=0.0, learning_rate="optimal"))


@pytest.mark.parametrize("number", [0.05, 1, np.float32(0.05), np.int64(1)])
def test_a_number_is_sgd(number):
    learning_rate = resolve_learning_rate(number)
    assert type(learning_rate) is LearningRateSGD and learning_rate.eta0 == float(number)
    assert learning_rate.learning_rate == "invscaling"


@pytest.mark.parametrize(
    "spec, error",
    [
        ("SDG", UnknownPluginError),
        ("sgd", UnknownPluginError),
        (True, PluginError),
        (None, PluginError),
        (0.0, PluginError),
    ],
)
def test_what_a_learning_rate_may_not_be(spec, error):
    with pytest.raises(error):
        resolve_learning_rate(spec)


def test_objects_are_copied():
    given = LearningRateAdam(eta0=0.5)
    assert resolve_learning_rate(given) is not given
    assert resolve_learning_rate(given).eta0 == 0.5
    assert resolve_learning_rate(LearningRateAdam).eta0 == 0.001


def test_a_learning_rate_that_writes_nothing_says_so():
    class Mine(BaseLearningRate):
        pass

    with pytest.raises(NotImplementedError, match="Mine must define its schedule"):
        Mine().rate(0)
    with pytest.raises(NotImplementedError, match="Mine must write its update"):
        Mine().update(GraphBuilder(), "w", "g", {}, "rate")
    assert Mine().init(np.ones(3)) == {}
    Mine().check()
