"""Plugins that write something else than they should are named, with what they should write."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.penalties import BasePenalty

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ [1.0, 2.0, 3.0]


class Squares(BasePenalty):
    """Without a sum."""

    def forward(self, op, weight):
        return op.Mul(weight, weight)


class Number(BasePenalty):
    """No name of a tensor."""

    def forward(self, op, weight):
        return 0.5


class Momentum(LearningRateSGD):
    """A state for each weight; one function writes the update."""

    def init(self, weight):
        return {"m": np.zeros_like(weight)}

    def update(self, op, weight, gradient, state, rate):
        return self.written(op, op.Sub(weight, op.Mul(rate, gradient)), state["m"])


class OtherState(Momentum):
    def written(self, op, new, state):
        return new, {"other": state}


class OtherShape(Momentum):
    def written(self, op, new, state):
        return op.ReduceSum(new, keepdims=0), {"m": state}


class OtherShapeOfState(Momentum):
    def written(self, op, new, state):
        return new, {"m": op.ReduceSum(state, keepdims=0)}


class OnlyWeight(Momentum):
    def written(self, op, new, state):
        return new


class ListOfStates(Momentum):
    def init(self, weight):
        return [np.zeros_like(weight)]


CASES = {
    "a penalty for each element": (
        "learning_penalty",
        Squares(),
        r"forward of Squares .* must return one of \(\)",
    ),
    "a number": ("learning_penalty", Number(), "forward of Number .* returned 0.5"),
    "another state": ("learning_rate", OtherState(), r"the states \['other'\], but init has \['m'\]"),
    "another shape": ("learning_rate", OtherShape(), r"new weight returned .* \(\), .* one of \(3, 1\)"),
    "another shape of a state": ("learning_rate", OtherShapeOfState(), "for the new state 'm'"),
    "no states": ("learning_rate", OnlyWeight(), "return the new weight, and a dict of new states"),
    "a list of states": ("learning_rate", ListOfStates(), "init of ListOfStates returned a list"),
}


@pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("name", CASES)
def test_wrong_results_are_named(name, kind):
    parameter, plugin, message = CASES[name]
    settings = {"learning_rate": 0.1, "max_iter": 2, parameter: plugin}
    with pytest.raises(PluginError, match=message):
        kind(Ridge(), **settings).fit(X, Y)


@pytest.mark.parametrize("warm_start", [False, True])
def test_penalties_around_the_start(warm_start):
    model = Ridge().fit(X, Y)
    with pytest.raises(PluginError, match="forward of Squares"):
        OrtGradientOptimizer(model, learning_penalty=Squares(), warm_start=warm_start).fit(X, Y)
