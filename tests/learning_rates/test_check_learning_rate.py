"""check_learning_rate passes for correct learning rates and fails for wrong ones."""

import numpy as np
import pytest

from ortlearn import plugins
from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import (
    AdaptiveSchedule,
    BaseLearningRate,
    BaseSchedule,
    BaseSolver,
    LearningRateAdam,
    LearningRateLBFGS,
    LearningRateSGD,
    LearningRateSGDNesterov,
    Solution,
)
from ortlearn.testing import check_learning_rate


def test_learning_rate_of_another_distribution():
    check_learning_rate(plugins.get(plugins.LEARNING_RATES, "example_sign_sgd")())


def test_parameters_are_checked_first():
    with pytest.raises(PluginError, match="eta0=0.0"):
        check_learning_rate(LearningRateSGD(eta0=0.0))


class Forgets(LearningRateSGD):
    def __init__(self, eta0=0.01, extra=3):
        super().__init__(eta0=eta0)
        self.extra = extra + 1


class Uphill(LearningRateSGD):
    def update(self, op, weight, gradient, state, rate):
        return op.Add(weight, op.Mul(gradient, rate)), {}


class OtherShape(LearningRateSGD):
    def update(self, op, weight, gradient, state, rate):
        return op.ReduceSum(op.Sub(weight, op.Mul(gradient, rate)), keepdims=0), {}


class OtherType(LearningRateSGDNesterov):
    def init(self, weight):
        return {"velocity": np.zeros(weight.shape, dtype=np.float16)}


class SharedState(LearningRateSGDNesterov):
    def init(self, weight):
        return {"velocity": weight}


class OtherStates(LearningRateSGDNesterov):
    def update(self, op, weight, gradient, state, rate):
        return weight, {"speed": gradient}


class NotStandard(LearningRateSGD):
    def update(self, op, weight, gradient, state, rate):
        return op.node("Descend", weight, gradient, rate, domain="mine"), {}


class NoOperator(LearningRateSGD):
    def update(self, op, weight, gradient, state, rate):
        return op.Descend(weight, gradient, rate), {}


class Normalised(LearningRateSGD):
    """Steps of unit length, which are not elementwise, although declared to be."""

    elementwise = True
    scales_gradient = False

    def update(self, op, weight, gradient, state, rate):
        length = op.Sqrt(op.ReduceSum(op.Mul(gradient, gradient), keepdims=0))
        return op.Sub(weight, op.Mul(op.Div(gradient, length), rate)), {}


class NotScalable(LearningRateAdam):
    scales_gradient = True


class NoState(LearningRateSGD):
    def update(self, op, weight, gradient, state, rate):
        return op.Sub(weight, op.Mul(gradient, rate))


class ChangesItself(LearningRateSGD):
    def init(self, weight):
        self.seen = weight.shape
        return {}


class Falls(BaseSchedule):
    def rate(self, epoch, eta0, memory=None):
        return eta0 * (1 - epoch / 50)


class Counts(BaseSchedule):
    """Memory stored in the schedule."""

    calls = 0

    def rate(self, epoch, eta0, memory=None):
        self.calls += 1
        return eta0 / self.calls


class Text(BaseSchedule):
    def rate(self, epoch, eta0, memory=None):
        return np.array([eta0])


@pytest.mark.parametrize(
    "wrong, message",
    [
        (Uphill(), "must decrease it"),
        (OtherShape(), "shape|Shape"),
        (OtherType(), "state 'velocity' of init is float16"),
        (SharedState(), "shares memory"),
        (OtherStates(), "update must return the states .*velocity.*, not .*speed"),
        (NoState(), "NoState: update must return \\(weight, states\\), not 'Sub"),
        (NotStandard(), "'mine'.*not standard"),
        (Normalised(), "elementwise is True, but updates of one vector of all weights differ"),
        (NotScalable(), r"depends on the rate other than by rate \* gradient"),
        (ChangesItself(), "changed the object"),
        (LearningRateSGD(learning_rate=Falls()), "rate of epoch 50 is 0.0"),
        (LearningRateSGD(learning_rate=Counts()), "changes between two calls"),
        (LearningRateSGD(learning_rate=Text()), "must be a finite number"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseLearningRate) else "",
)
def test_wrong_learning_rates(wrong, message):
    with pytest.raises(AssertionError, match=message):
        check_learning_rate(wrong)


def test_constructor_that_changes_a_parameter():
    with pytest.raises((AssertionError, RuntimeError), match="extra|parameters"):
        check_learning_rate(Forgets())


def test_schedule_that_depends_on_losses():
    check_learning_rate(LearningRateSGD(learning_rate=AdaptiveSchedule()))


class Lazy(BaseSolver):
    def minimize(self, objective, weights, max_iter, note, precision):
        note(weights)
        return Solution(weights, True, "enough")


class Unsure(LearningRateLBFGS):
    def minimize(self, *arguments):
        found = super().minimize(*arguments)
        return Solution(found.weights, False, "who knows")


class InPlace(LearningRateLBFGS):
    def minimize(self, objective, weights, *others):
        weights += 1.0
        return super().minimize(objective, weights, *others)


class Silent(LearningRateLBFGS):
    def minimize(self, objective, weights, max_iter, note, precision):
        return super().minimize(objective, weights, max_iter, lambda weights: None, precision)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (Lazy(), "decreases a quadratic only from"),
        (Unsure(), "converged is False after minimising a quadratic: who knows"),
        (InPlace(), "changes the weights it starts from"),
        (Silent(), "calls back after 0 iterations"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseSolver) else "",
)
def test_wrong_solvers(wrong, message):
    with pytest.raises(AssertionError, match=message):
        check_learning_rate(wrong)


def test_unknown_operator():
    with pytest.raises(ValueError, match="ONNX has no operator 'Descend'"):
        check_learning_rate(NoOperator())
