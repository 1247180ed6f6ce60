"""Parameters of learning rates: defaults, validation, and resolution of names, numbers and objects."""

import math

import numpy as np
import pytest

from ortlearn import plugins
from ortlearn.exceptions import PluginError, UnknownPluginError
from ortlearn.graphs import GraphBuilder
from ortlearn.learning_rates import (
    BaseLearningRate,
    BaseSolver,
    LearningRateAdam,
    LearningRateLBFGS,
    LearningRateSGD,
    LearningRateSGDNesterov,
    StepSchedule,
    WarmUpSchedule,
    resolve_learning_rate,
)
from tests.learning_rates.records import INVALID, INVALID_BY_SCHEDULE, SCHEDULES, SOLVERS

NOT_NUMBERS = [math.nan, math.inf, "fast", None, [0.1], np.array([0.1])]
FLAGS = {"nesterov", "centered", "restarts"}


def invalid_values():
    scheduled = {"eta0": [0.0, -1.0, True], "alpha": [-1.0, True], "power_t": []}
    for name, parameters in INVALID.items():
        own = parameters if name in SOLVERS else {**scheduled, **parameters}
        for parameter, values in own.items():
            yield pytest.param(plugins.LEARNING_RATES, name, parameter, values, id=f"{name}-{parameter}")
    for name, parameters in INVALID_BY_SCHEDULE.items():
        for parameter, values in parameters.items():
            yield pytest.param(plugins.SCHEDULES, name, parameter, values, id=f"{name}-{parameter}")


@pytest.mark.parametrize("group, name, parameter, values", list(invalid_values()))
def test_invalid_parameters(group, name, parameter, values):
    kind = plugins.get(group, name)
    spans = group == plugins.SCHEDULES and parameter in kind.spans
    for value in [*values, *(v for v in NOT_NUMBERS if v is not None or not spans)]:
        with pytest.raises(PluginError, match=rf"{kind.__name__}: {parameter}="):
            kind(**{parameter: value}).check()
    kind().check()


def test_every_schedule_has_invalid_values():
    assert set(INVALID_BY_SCHEDULE) == set(SCHEDULES)


@pytest.mark.parametrize("group, names", [(plugins.LEARNING_RATES, INVALID), (plugins.SCHEDULES, SCHEDULES)])
def test_every_numeric_parameter_is_checked(group, names):
    for name in names:
        kind = plugins.get(group, name)
        for parameter, value in kind().get_params(deep=False).items():
            if isinstance(value, str):
                continue
            with pytest.raises(PluginError, match=f"{parameter}="):
                kind(**{parameter: "no"}).check()


def test_invalid_schedules():
    for bad in ("fast", None, 3, ["constant"]):
        with pytest.raises(PluginError, match="LearningRateSGD: learning_rate="):
            resolve_learning_rate(LearningRateSGD(learning_rate=bad))
    with pytest.raises(UnknownPluginError, match="Known names: .*cosine"):
        resolve_learning_rate(LearningRateSGD(learning_rate="fast"))
    with pytest.raises(PluginError, match="StepSchedule: period=0"):
        resolve_learning_rate(LearningRateAdam(learning_rate=StepSchedule(period=0)))
    with pytest.raises(PluginError, match="StepSchedule: period=0"):
        resolve_learning_rate(LearningRateAdam(learning_rate=WarmUpSchedule(then=StepSchedule(period=0))))


def test_alpha_is_checked_for_the_optimal_schedule_only():
    resolve_learning_rate(LearningRateSGD(alpha=0.0))
    with pytest.raises(PluginError, match="alpha=0.0 must be"):
        resolve_learning_rate(LearningRateSGD(alpha=0.0, learning_rate="optimal"))


def test_defaults():
    params = {"eta0": 0.01, "alpha": 0.0001, "power_t": 0.25, "learning_rate": "invscaling", "schedule": None}
    assert LearningRateSGD().get_params() == params
    assert LearningRateSGDNesterov().get_params() == {**params, "momentum": 0.9, "nesterov": True}
    constant = {"alpha": 0.0001, "power_t": 0.25, "learning_rate": "constant", "schedule": None}
    betas = {"beta_1": 0.9, "beta_2": 0.999}
    own = {
        "Adam": {"eta0": 0.001, "epsilon": 1e-8, **betas},
        "AdamW": {"eta0": 0.001, "epsilon": 1e-8, "weight_decay": 0.01, **betas},
        "RMSprop": {"eta0": 0.01, "rho": 0.99, "epsilon": 1e-8, "momentum": 0.0, "centered": False},
        "Adagrad": {"eta0": 0.01, "initial_total": 0.0, "epsilon": 1e-10},
        "Adadelta": {"eta0": 1.0, "rho": 0.9, "epsilon": 1e-6},
        "Lion": {"eta0": 0.0001, "beta_1": 0.9, "beta_2": 0.99, "weight_decay": 0.0},
    }
    for name, expected in own.items():
        assert plugins.get(plugins.LEARNING_RATES, name)().get_params() == {**constant, **expected}


@pytest.mark.parametrize("number", [0.05, 1, np.float32(0.05), np.int64(1)])
def test_number_means_sgd(number):
    learning_rate = resolve_learning_rate(number)
    assert type(learning_rate) is LearningRateSGD and learning_rate.eta0 == float(number)
    assert learning_rate.learning_rate == "invscaling"


@pytest.mark.parametrize(
    "spec, error",
    [
        ("SDG", UnknownPluginError),
        ("sgdd", UnknownPluginError),
        (True, PluginError),
        (None, PluginError),
        (0.0, PluginError),
        (StepSchedule(), PluginError),
    ],
)
def test_invalid_learning_rates(spec, error):
    with pytest.raises(error):
        resolve_learning_rate(spec)


def test_objects_are_copied():
    given = LearningRateAdam(eta0=0.5, learning_rate=StepSchedule(period=3))
    resolved = resolve_learning_rate(given)
    assert resolved is not given and resolved.learning_rate is not given.learning_rate
    assert (resolved.eta0, resolved.learning_rate.period) == (0.5, 3)
    assert resolve_learning_rate(LearningRateAdam).eta0 == 0.001


def test_unimplemented_methods():
    class Mine(BaseLearningRate):
        pass

    class MySolver(BaseSolver):
        pass

    with pytest.raises(NotImplementedError, match="Mine has no schedule"):
        Mine().rate(0)
    with pytest.raises(NotImplementedError, match="Mine has no update"):
        Mine().update(GraphBuilder(), "w", "g", {}, "rate")
    assert Mine().init(np.ones(3)) == {} and Mine().start() is None
    Mine().check()
    with pytest.raises(NotImplementedError, match="MySolver does not minimise"):
        MySolver().minimize(None, None, 1, None, 0.0)
    assert MySolver.full_batch and LearningRateLBFGS.full_batch
