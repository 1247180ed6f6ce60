"""An invalid rate of a schedule is an error in its epoch, and the estimator is not changed."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from ortlearn import plugins
from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import BaseLearningRate, BaseSchedule, LearningRateSGD, WarmUpSchedule

X = np.random.RandomState(0).normal(size=(40, 2))
Y = X[:, 0] - X[:, 1]
BAD = [-0.1, -1e-300, np.nan, np.inf, -np.inf, 1e39, None, "0.1", 0.1j, [0.1], np.array([0.1])]


class Falling(BaseSchedule):
    """Linear schedule that is negative from the fourth epoch on."""

    def rate(self, epoch, eta0, memory=None):
        return 0.25 - 0.1 * epoch


class Returning(BaseSchedule):
    """Schedule that returns a value from the third epoch or loss on."""

    def __init__(self, value=None):
        self.value = value

    def rate(self, epoch, eta0, memory=None):
        return eta0 if (epoch if memory is None else memory) < 2 else self.value


class AfterLosses(Returning):
    def start(self):
        return 0

    def remember(self, memory, loss):
        return memory + 1


class OwnRate(BaseLearningRate):
    """Learning rate without a schedule."""

    def rate(self, epoch, memory=None):
        return -1.0 if epoch > 1 else 0.1

    def update(self, op, weight, gradient, state, rate):
        return op.Sub(weight, op.Mul(gradient, rate)), {}


def check_rejected(fitted, unchanged, schedule, epoch, value, train=None):
    def fails():
        fitted.learning_rate = rate
        with pytest.raises(PluginError) as caught:
            (train or fitted.fit)(X, Y)
        fitted.learning_rate = before
        text = str(caught.value)
        assert type(schedule).__name__ in text and f"for epoch {epoch}," in text and repr(value) in text

    before = fitted.learning_rate
    rate = schedule if isinstance(schedule, BaseLearningRate) else LearningRateSGD(learning_rate=schedule)
    unchanged(fitted, X, fails)


@pytest.fixture
def fitted(optimizer):
    return optimizer(LinearRegression(), max_iter=5, random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", [Returning, AfterLosses])
@pytest.mark.parametrize("value", BAD, ids=str)
def test_invalid_rates(value, kind, fitted, unchanged):
    check_rejected(fitted, unchanged, kind(value), 3, value)


def test_negative_rate(fitted, unchanged):
    check_rejected(fitted, unchanged, Falling(), 4, Falling().rate(3, 1.0))
    check_rejected(fitted, unchanged, WarmUpSchedule(epochs=1, then=Falling()), 5, Falling().rate(3, 1.0))
    check_rejected(fitted, unchanged, OwnRate(), 3, -1.0)


def test_averaged_weights(optimizer, unchanged):
    fitted = optimizer(LinearRegression(), max_iter=5, random_state=0, average=True).fit(X, Y)
    check_rejected(fitted, unchanged, Falling(), 4, Falling().rate(3, 1.0))


def test_error_names_the_plugin(optimizer):
    with plugins.temporary(plugins.SCHEDULES, "falling", Falling):
        with pytest.raises(PluginError, match="Falling.* for epoch 4,"):
            optimizer(LinearRegression(), learning_rate=LearningRateSGD(learning_rate="falling")).fit(X, Y)


def test_partial_fit(fitted, unchanged):
    for _ in range(2):
        fitted.partial_fit(X, Y)
    check_rejected(fitted, unchanged, Returning(-1.0), 8, -1.0, fitted.partial_fit)


@pytest.mark.parametrize("value", [0.0, 0, np.float32(0.1), np.array(0.1), True])
def test_valid_rates(value, optimizer):
    schedule = Returning(value)
    trained = optimizer(
        LinearRegression(), learning_rate=LearningRateSGD(learning_rate=schedule), max_iter=4, random_state=0
    ).fit(X, Y)
    assert [record["rate"] for record in trained.history_[2:]] == [float(value)] * 2
    assert type(trained.history_[-1]["rate"]) is float
