"""Schedules equal their definitions, alone and in an update; schedules that depend on losses."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor
from sklearn.neural_network import MLPRegressor

from ortlearn import plugins
from ortlearn.exceptions import PluginError, UnknownPluginError
from ortlearn.learning_rates import (
    AdaptiveSchedule,
    BaseSchedule,
    ConstantSchedule,
    CosineSchedule,
    InvScalingSchedule,
    LearningRateAdam,
    LearningRateSGD,
    LearningRateSGDNesterov,
    OneCycleSchedule,
    OptimalSchedule,
    PlateauSchedule,
    Rates,
    StepSchedule,
    WarmUpSchedule,
    resolve_schedule,
)
from ortlearn.testing import check_learning_rate
from tests.learning_rates.records import SCHEDULES

ALL = [
    pytest.param(name, *case, id=f"{name}-{i}")
    for name, cases in SCHEDULES.items()
    for i, case in enumerate(cases)
]


def rates_of(schedule, losses, eta0=1.0):
    """Return the rates of all epochs and of the next one."""
    rates = Rates(LearningRateSGD(eta0=eta0, learning_rate=schedule))
    found = []
    for epoch, loss in enumerate(losses):
        found.append(rates.of(epoch))
        rates.note(loss)
    return [*found, rates.of(len(losses))]


def test_every_schedule_has_a_record():
    infos = plugins.list_plugins(plugins.SCHEDULES)
    assert {info.name for info in infos if info.distribution == "ortlearn"} == set(SCHEDULES)
    for name, cases in SCHEDULES.items():
        assert all(type(schedule) is plugins.get(plugins.SCHEDULES, name) for schedule, _ in cases)


@pytest.mark.parametrize("name, schedule, definition", ALL)
def test_definition(name, schedule, definition):
    epochs = range(120)
    expected = [definition(e) for e in epochs]
    np.testing.assert_allclose([schedule.rate(e, 1.0) for e in epochs], expected, rtol=1e-9)
    factor = 1.0 if "Optimal" in repr(schedule) else 0.3
    got = [LearningRateSGD(eta0=0.3, learning_rate=schedule).rate(e) for e in epochs]
    np.testing.assert_allclose(got, factor * np.array(expected), rtol=1e-9)


@pytest.mark.parametrize("name, schedule, definition", ALL)
def test_check_with_an_update(name, schedule, definition):
    check_learning_rate(LearningRateSGDNesterov(learning_rate=schedule), steps=5)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_name_means_default_parameters(name):
    default = type(SCHEDULES[name][0][0])()
    by_name = [LearningRateAdam(learning_rate=name).rate(e) for e in range(40)]
    assert by_name == [LearningRateAdam(learning_rate=default).rate(e) for e in range(40)]


def test_named_schedule_has_parameters_of_the_learning_rate():
    rate = LearningRateAdam(alpha=0.01, power_t=0.5, learning_rate="invscaling")
    assert repr(rate.resolved_schedule()) == repr(InvScalingSchedule(power_t=0.5))
    rate.set_params(learning_rate="optimal")
    assert repr(rate.resolved_schedule()) == repr(OptimalSchedule(alpha=0.01))
    rate.set_params(learning_rate=InvScalingSchedule())
    assert rate.resolved_schedule().power_t == 0.25
    np.testing.assert_allclose(OptimalSchedule(alpha=0.01).rate(0, 1.0), math.sqrt(10))


def test_nested_parameters_of_a_schedule():
    rate = LearningRateSGD(learning_rate=WarmUpSchedule(then=CosineSchedule()))
    rate.set_params(learning_rate__epochs=3, learning_rate__then__period=7)
    assert rate.learning_rate.then.period == 7
    assert rate.get_params()["learning_rate__epochs"] == 3
    rate.set_params(learning_rate=StepSchedule(), learning_rate__period=4)
    assert rate.learning_rate.period == 4
    with pytest.raises(ValueError, match="'learning_rate__period' cannot be set.*'step' is not an object"):
        rate.set_params(learning_rate="step", learning_rate__period=4)


def test_graph_is_independent_of_the_schedule():
    keys = {
        LearningRateAdam(eta0=e, learning_rate=s).graph_key()
        for e in (0.1, 0.2)
        for s in ("constant", CosineSchedule(period=3), CosineSchedule(period=4))
    }
    assert len(keys) == 1
    assert LearningRateAdam(beta_1=0.5).graph_key() not in keys


def test_rates_equal_scikit_learns():
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


@pytest.mark.parametrize(
    "name, spanning",
    [
        ("cosine", CosineSchedule(period=40)),
        ("step", StepSchedule(period=12)),
        ("one_cycle", OneCycleSchedule(epochs=40)),
        ("warmup", WarmUpSchedule(epochs=2)),
        (WarmUpSchedule(then="cosine"), WarmUpSchedule(epochs=2, then=CosineSchedule(period=38))),
        (
            WarmUpSchedule(epochs=5, then=StepSchedule()),
            WarmUpSchedule(epochs=5, then=StepSchedule(period=10)),
        ),
        (CosineSchedule(final=0.5), CosineSchedule(period=40, final=0.5)),
    ],
    ids=str,
)
def test_default_length_is_the_number_of_epochs(name, spanning):
    rate = LearningRateAdam(eta0=0.3, learning_rate=name)
    before = repr(rate)
    found = rate.for_epochs(40)
    assert repr(found.learning_rate) == repr(spanning) and repr(rate) == before
    expected = LearningRateAdam(eta0=0.3, learning_rate=spanning)
    assert [found.rate(e) for e in range(50)] == [expected.rate(e) for e in range(50)]
    assert repr(found.for_epochs(7)) == repr(found), "a known length has changed"


@pytest.mark.parametrize(
    "schedule",
    ["constant", "optimal", CosineSchedule(period=7), WarmUpSchedule(3, then="invscaling")],
    ids=str,
)
def test_given_length_is_independent_of_the_training(schedule):
    rate = LearningRateAdam(learning_rate=schedule)
    assert rate.for_epochs(40) is rate


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_trainings_of_few_epochs(name):
    for n_epochs in (1, 2, 3):
        rate = LearningRateSGD(eta0=1.0, learning_rate=name).for_epochs(n_epochs)
        rate.check()
        assert all(rate.rate(e) > 0 for e in range(5))
    assert LearningRateSGD(eta0=1.0, learning_rate="one_cycle").for_epochs(1).rate(0) == 1.0


def test_adaptive():
    # 0.49995 and 0.6 are not lower than 0.5 by 1e-4, 0.4 is
    losses = [1.0, 0.5, 0.49995, 0.6, 0.4, 0.5, 0.5, 0.4, 0.45]
    expected = [1, 1, 1, 1, 0.2, 0.2, 0.2, 0.04, 0.04, 0.008]
    np.testing.assert_allclose(rates_of(AdaptiveSchedule(), losses), expected)
    losses = [1.0, 0.5, 0.6, 0.6, 0.4, 0.4, 0.5, 0.5, 0.41, 0.45]
    slower = AdaptiveSchedule(patience=3, divisor=2.0, tol=0.0)
    np.testing.assert_allclose(rates_of(slower, losses), [1] * 9 + [0.5, 0.5])


def test_adaptive_equals_scikit_learns(adaptive_network):
    theirs, losses, expected = adaptive_network
    schedule = AdaptiveSchedule(tol=theirs.tol, patience=theirs.n_iter_no_change + 1)
    got = rates_of(schedule, losses, eta0=theirs.learning_rate_init)[1:]
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert len(set(expected)) > 3


@pytest.fixture
def adaptive_network():
    """Return a scikit-learn MLP with its losses and rates after each epoch, above the lowest rate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = MLPRegressor(
        hidden_layer_sizes=(3,),
        solver="sgd",
        learning_rate="adaptive",
        learning_rate_init=0.05,
        tol=1e-3,
        n_iter_no_change=2,
        random_state=0,
    )
    rates = []
    for _ in range(60):
        model.partial_fit(X, X.sum(axis=1))
        rates.append(model._optimizer.learning_rate)
        if rates[-1] < 1e-5:
            break
    return model, model.loss_curve_, rates


def test_lowest_rate_of_adaptive():
    rates = rates_of(AdaptiveSchedule(patience=1), [1.0] * 40)
    assert rates[1] == 1.0 and rates[2] == 0.2
    assert rates[-1] == rates[-2] and 1e-7 < rates[-1] <= 1e-6


def test_plateau():
    losses = [1.0, 0.5, 0.5, 0.49999, 0.6, 0.4, 0.5, 0.5, 0.5]
    expected = [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    np.testing.assert_allclose(rates_of(PlateauSchedule(factor=0.5, patience=1), losses), expected)
    waits = PlateauSchedule(factor=0.5, patience=0, cooldown=2)
    np.testing.assert_allclose(rates_of(waits, [1.0] * 8), [1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125])
    # negative losses
    falling = [-1.0, -2.0, -3.0, -4.0]
    assert rates_of(PlateauSchedule(factor=0.5, patience=0), falling) == [1.0] * 5
    assert rates_of(PlateauSchedule(factor=0.5, patience=0), [-1.0] * 3) == [1.0, 1.0, 0.5, 0.25]
    low = rates_of(PlateauSchedule(patience=0, minimum=0.05), [1.0] * 4)
    np.testing.assert_allclose(low, [1, 1, 0.1, 0.05, 0.05])
    assert rates_of(PlateauSchedule(minimum=0.1), [], eta0=0.01) == [0.01]


def test_losses_of_the_warm_up_are_ignored():
    schedule = WarmUpSchedule(epochs=3, first=0.25, then=AdaptiveSchedule())
    got = rates_of(schedule, [1.0] * 7)
    np.testing.assert_allclose(got, [0.25, 0.5, 0.75, 1, 1, 1, 0.2, 0.2])
    assert WarmUpSchedule().start() is None
    assert WarmUpSchedule().remember(None, 1.0) is None


def test_continued_schedule_has_the_same_rates():
    losses = [1.0, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.8]
    for schedule in (AdaptiveSchedule(), PlateauSchedule(patience=0), WarmUpSchedule(2, then="adaptive")):
        rate = LearningRateSGD(eta0=1.0, learning_rate=schedule)
        expected = rates_of(schedule, losses)
        for done in range(len(losses)):
            assert Rates(rate, losses[:done]).of(done) == expected[done]


def test_custom_schedule():
    class Halving(BaseSchedule):
        """Half the rate in every epoch."""

        def rate(self, epoch, eta0):
            return eta0 / 2**epoch

    assert LearningRateAdam(eta0=1.0, learning_rate=Halving()).rate(3) == 0.125
    assert rates_of(Halving(), [1.0, 1.0]) == [1.0, 0.5, 0.25]
    with plugins.temporary(plugins.SCHEDULES, "halving", Halving):
        assert LearningRateAdam(eta0=1.0, learning_rate="halving").rate(3) == 0.125
    assert LearningRateAdam(eta0=1.0, learning_rate=Halving).rate(3) == 0.125
    with pytest.raises(NotImplementedError, match="BaseSchedule has no rates"):
        BaseSchedule().rate(0, 1.0)


@pytest.mark.parametrize("spec, error", [("fast", UnknownPluginError), (3, PluginError), (None, PluginError)])
def test_invalid_schedules(spec, error):
    with pytest.raises(error):
        resolve_schedule(spec)
    with pytest.raises(error):
        WarmUpSchedule(then=spec).check()
    assert isinstance(resolve_schedule("constant"), ConstantSchedule)


@pytest.mark.parametrize("kind", [LearningRateSGD, LearningRateAdam])
def test_schedule_and_its_alias(kind):
    named, alias = kind(eta0=0.5, schedule="cosine"), kind(eta0=0.5, learning_rate="cosine")
    assert [named.for_epochs(8).rate(n) for n in range(9)] == [alias.for_epochs(8).rate(n) for n in range(9)]
    assert named.graph_key() == alias.graph_key()
    both = kind(schedule=StepSchedule(), learning_rate="cosine").set_params(schedule__factor=0.5)
    assert repr(both.resolved_schedule()) == repr(StepSchedule(factor=0.5))
    assert repr(clone(both)) == repr(both) and Rates(both).of(0) == both.rate(0)
    with pytest.raises(PluginError, match="'learning_rate' is another name of 'schedule': pass one of them"):
        both.check()
    with pytest.raises(ValueError, match="schedule='cosine' is not an object"):
        named.set_params(schedule__period=3)
    with pytest.raises(PluginError, match="schedule='fast' is not a schedule"):
        kind(schedule="fast").check()
