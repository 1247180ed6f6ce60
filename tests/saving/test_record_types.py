"""Every class of which a fitted model may consist is a listed type or a plugin."""

import importlib
import pkgutil

import pytest

import ortlearn
from ortlearn import plugins
from ortlearn.estimators.saved_types import TYPES
from ortlearn.learning_rates import BaseLearningRate
from ortlearn.losses import BaseLoss
from ortlearn.models.constraints.base import Constraint
from ortlearn.penalties import BasePenalty

#: Classes that exist during a training only, or hold a Python function.
LEFT_OUT = {"FunctionLoss", "MarginLoss", "SmoothedLoss", "AnchoredPenalty", "SmoothedPenalty"}
LEFT_OUT |= {"_ScaledPenalty", "_FromStart", "ScheduledLearningRate", "BaseSolver", "WrappedRate", "Rescaled"}
LEFT_OUT |= {"Averaged"}


def subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


@pytest.mark.parametrize("base", [Constraint, BaseLoss, BasePenalty, BaseLearningRate])
def test_every_class_is_listed_or_a_plugin(base):
    for package in ("losses", "penalties", "learning_rates", "training", "models.constraints"):
        module = importlib.import_module(f"ortlearn.{package}")
        for info in pkgutil.iter_modules(module.__path__, f"{module.__name__}."):
            importlib.import_module(info.name)
    known = {info.value.rpartition(":")[2] for info in plugins.list_plugins()} | {*TYPES} | LEFT_OUT
    defined = {cls.__name__ for cls in subclasses(base) if cls.__module__.startswith(f"{ortlearn.__name__}.")}
    assert defined and not defined - known
