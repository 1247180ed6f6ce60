"""Adaptive schedules get the loss of every epoch, and are stateless objects."""

import numpy as np
import pytest

from ortlearn.learning_rates import (
    AdaptiveSchedule,
    BaseSchedule,
    CosineSchedule,
    LearningRateAdam,
    LearningRateSGD,
    PlateauSchedule,
    Rates,
)
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep
from ortlearn.training.steps.single_graph_step import SingleGraphStep

START = {"coef": np.array([[0.5], [0.5]], np.float32)}
CPU = Device("cpu")


class Recorder(BaseSchedule):
    """Records every loss, and halves the rate after each."""

    def start(self):
        return ()

    def remember(self, memory, loss):
        return (*memory, loss)

    def rate(self, epoch, eta0, memory=None):
        assert epoch == len(memory)
        return eta0 / 2 ** len(memory)


def train(task, samples, step_class=EpochStep, weights=START, **settings):
    step = step_class(task, CPU)
    rates, set_rate = [], step.set_rate
    step.set_rate = lambda rate: (rates.append(rate), set_rate(rate))[1]
    options = {"max_iter": 6, "batch_size": 10, "shuffle": False, **settings}
    state = options.pop("state", TrainingState(weights))
    return run_training(step, samples, state, LoopSettings(**options)), rates


@pytest.mark.parametrize("step_class", [EpochStep, SingleGraphStep])
def test_schedule_gets_every_loss(step_class, make_task, samples):
    task = make_task(learning_rate=LearningRateSGD(eta0=0.1, learning_rate=Recorder()))
    result, rates = train(task, samples, step_class)
    np.testing.assert_allclose(rates, [0.1 / 2**e for e in range(6)])
    assert len(result.train_losses) == 6
    assert vars(task.update.learning_rate.learning_rate) == {}


@pytest.mark.parametrize("schedule", [AdaptiveSchedule(tol=0.05), PlateauSchedule(patience=0, threshold=0.9)])
def test_rates_follow_the_losses(schedule, make_task, samples):
    learning_rate = LearningRateSGD(eta0=0.1, learning_rate=schedule)
    result, rates = train(make_task(learning_rate=learning_rate), samples, max_iter=12)
    losses = result.train_losses
    assert rates == [Rates(learning_rate, losses[:e]).of(e) for e in range(12)]
    assert len(set(rates)) > 1
    # The result is that of constant rates with these values: the epoch graph used them.
    state = TrainingState(START)
    for epoch, rate in enumerate(rates):
        fixed = LearningRateSGD(eta0=rate, learning_rate="constant")
        again, _ = train(make_task(learning_rate=fixed), samples, state=state, max_iter=epoch + 1)
        state = again
        assert again.train_losses == losses[: epoch + 1]
    np.testing.assert_array_equal(state.weights["coef"], result.weights["coef"])


@pytest.mark.parametrize("schedule", [AdaptiveSchedule(tol=0.05), Recorder(), CosineSchedule(period=5)])
def test_continued_schedule(schedule, make_task, samples):
    task = make_task(learning_rate=LearningRateAdam(eta0=0.1, learning_rate=schedule))
    whole, rates = train(task, samples)
    first, some = train(task, samples, max_iter=2)
    second, others = train(task, samples, state=first)
    assert some + others == rates
    np.testing.assert_array_equal(second.weights["coef"], whole.weights["coef"])


def test_schedules_share_a_graph(make_task, samples):
    tasks = [
        make_task(learning_rate=LearningRateAdam(eta0=e, learning_rate=s))
        for e in (0.1, 0.2)
        for s in ("constant", AdaptiveSchedule(), CosineSchedule(period=3))
    ]
    keys = {task.changed().graph_key() for task in tasks}
    assert len(keys) == 1
