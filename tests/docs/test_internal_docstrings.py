"""Docstrings of functions and classes without users outside ortlearn have no sections."""

import importlib
import inspect

from ortlearn import OrtGradientOptimizer
from ortlearn.estimators.prediction import PredictionMethods
from ortlearn.losses import HuberLoss
from ortlearn.models import ModelWriter
from ortlearn.training import TrainingTask
from tests.test_public_docstrings import MODULES, PACKAGES, each, needs_sections, sections

#: Names that are not exported by a package, but that authors of plugins import or are passed.
NOT_EXPORTED = {
    "ortlearn.differentiation.gradient_builder.GradientBuilder",
    "ortlearn.differentiation.rule_context.RuleNode",
    "ortlearn.differentiation.rule_set.RuleSet",
    "ortlearn.models.constraints.signs.NotNegative",
    "ortlearn.models.constraints.signs.Positive",
    "ortlearn.models.forms.Form",
    "ortlearn.models.trees.nodes.Nodes",
}


def function_of(member):
    """Return the function of a method or property, which may be available on a condition."""
    names = ("__func__", "fget", "func", "fn")
    return next((getattr(member, name) for name in names if hasattr(member, name)), member)


def with_sections_allowed():
    """Return the public functions and classes, and their public methods, also of base classes."""
    found = set()
    for path, obj in each([*PACKAGES, "ortlearn.exceptions"]):
        found |= {obj} if needs_sections(path) else set()
        for base in obj.__mro__ if inspect.isclass(obj) else ():
            public = [name for name in vars(base) if name[0] != "_" and needs_sections(f"{path}.{name}")]
            functions = [function_of(vars(base)[name]) for name in public]
            found |= {function for function in functions if inspect.isfunction(function)}
    return found


def defined_in(module):
    """Yield the path, definition and allowed sections of functions, classes and methods of a module."""
    for name, obj in vars(module).items():
        path = f"{module.__name__}.{name}"
        if getattr(obj, "__module__", "") != module.__name__ or path in NOT_EXPORTED:
            continue
        if inspect.isfunction(obj):
            yield path, obj, {"Summary"}
        elif inspect.isclass(obj):
            yield path, obj, {"Summary", "Attributes"}
            functions = ((method, function_of(member)) for method, member in vars(obj).items())
            yield from ((f"{path}.{m}", f, {"Summary"}) for m, f in functions if inspect.isfunction(f))


def test_internal_docstrings_have_no_sections():
    allowed = with_sections_allowed()
    long = {
        path
        for name in MODULES
        for path, obj, titles in defined_in(importlib.import_module(name))
        if obj not in allowed and sections(obj.__doc__).keys() - titles
    }
    assert not long


def test_exceptions_to_sections_exist():
    assert {f"{obj.__module__}.{obj.__qualname__}" for _, obj in each(MODULES)} >= NOT_EXPORTED


def test_public_methods_are_found():
    allowed = with_sections_allowed()
    assert {
        OrtGradientOptimizer.fit,
        function_of(vars(PredictionMethods)["predict_proba"]),
        HuberLoss,
    } <= allowed
    assert not {TrainingTask.inputs, ModelWriter.step} & allowed


def test_definitions_are_found():
    module = importlib.import_module("ortlearn.training.settings")
    paths = {path.removeprefix(f"{module.__name__}.") for path, *_ in defined_in(module)}
    assert {"Observer", "LoopSettings.keeps_best"} <= paths
