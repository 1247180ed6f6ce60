"""Plugins whose results can be changed by a small factor, part by part."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator

from ortlearn import plugins
from ortlearn.learning_rates import BaseLearningRate
from ortlearn.learning_rates.solver import BaseSolver
from ortlearn.models.parameters import part_of
from ortlearn.models.registry import public_path
from ortlearn.penalties import BasePenalty

__all__ = ["FACTOR", "Subject", "find_subjects"]

#: What a changed result is multiplied by.
FACTOR = 1.01


@dataclass
class Subject:
    """A plugin, wrapped so that its results are seen, and one of them changed.

    Attributes
    ----------
    kind : {"loss", "penalty", "learning_rate", "schedule", "rule", "model"}
        What it is.
    name : str
        Name of the plugin, operator of the rule, class of the model.
    plugin : object
        What the plugin declares.
    words : tuple of str
        How tests that are about it name it.
    seen : set of str
        Parts that gave a result since it was emptied.
    changed : str
        Part that is changed; none at first.
    """

    kind: str
    name: str
    plugin: Any
    words: tuple[str, ...]
    seen: set[str] = field(default_factory=set)
    changed: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    def install(self) -> None:
        """Wrap the plugin; it stays wrapped until the process ends."""
        _INSTALL[self.kind](self)

    def note(self, part: str, result: Any, scale: Callable[[Any], Any]) -> Any:
        """Return the result of a part, scaled where this part is changed."""
        if result is None:
            return None
        self.seen.add(part)
        return scale(result) if part == self.changed else result

    def wrap(self, method: str, part: str, scale: Callable) -> None:
        """Wrap a method of a class: ``scale(result, *arguments)`` is its changed result."""
        original = getattr(self.plugin, method)

        @functools.wraps(original)
        def wrapped(owner, *args, **kwargs):
            result = original(owner, *args, **kwargs)
            return self.note(part, result, lambda found: scale(found, *args, **kwargs))

        setattr(self.plugin, method, wrapped)


def _longer(op, new: str, old: str) -> str:
    """Write a step from ``old`` to ``new`` that is longer by the factor."""
    return op.Add(old, op.Mul(op.Sub(new, old), FACTOR))


def _install_loss(subject: Subject) -> None:
    subject.wrap("forward", "forward", lambda rows, op, *_: op.Mul(rows, FACTOR))


def _install_penalty(subject: Subject) -> None:
    for method in ("forward", "smooth_part"):
        if getattr(subject.plugin, method) is not getattr(BasePenalty, method):
            subject.wrap(method, method, lambda value, op, *_: op.Mul(value, FACTOR))
    if subject.plugin.proximal_step is not BasePenalty.proximal_step:
        subject.wrap("proximal_step", "proximal_step", lambda new, op, weight, *_: _longer(op, new, weight))


def _install_schedule(subject: Subject) -> None:
    subject.wrap("rate", "rate", lambda rate, *_, **__: rate * FACTOR)


def _install_learning_rate(subject: Subject) -> None:
    kind = subject.plugin
    if issubclass(kind, BaseSolver):
        subject.wrap("minimize", "minimize", _further)
        return
    original = kind.update

    @functools.wraps(original)
    def update(owner, op, weight, gradient, state, rate):
        new, states = original(owner, op, weight, gradient, state, rate)
        new = subject.note("step", new, lambda found: _longer(op, found, weight))
        return new, {
            name: subject.note(f"state.{name}", value, lambda found: op.Mul(found, FACTOR))
            for name, value in states.items()
        }

    kind.update = update
    scale = kind.proximal_scale
    if scale is not BaseLearningRate.proximal_scale:
        kind.proximal_scale = property(
            lambda owner: subject.note("proximal_scale", scale.__get__(owner), lambda found: found * FACTOR)
        )


def _further(solution, *_args, **_kwargs):
    return dataclasses.replace(solution, weights=solution.weights * FACTOR)


def _install_rule(subject: Subject) -> None:
    rules, key = subject.plugin
    original = rules.rules[key].function

    @functools.wraps(original)
    def rule(op, node, grad):
        result = original(op, node, grad)
        result = [result] if result is None or isinstance(result, str) else list(result)
        for name, value in node.outer_gradients.items():
            node.outer_gradients[name] = subject.note("outer", value, lambda found: op.Mul(found, FACTOR))
        changed = [
            subject.note(f"input {i}", value, lambda found: op.Mul(found, FACTOR))
            for i, value in enumerate(result)
        ]
        return changed if len(changed) > 1 else changed[0] if changed else None

    rules.rules[key] = dataclasses.replace(rules.rules[key], function=rule)


#: Fields of Scores that hold tensors of floats.
_SCORES = ("score", "prediction", "probabilities", "decision", "transformed", "likelihood")


def _install_model(subject: Subject) -> None:
    original = subject.plugin.write

    @functools.wraps(original)
    def write(owner, op, model, x):
        before = set(op.parameters)
        scores = original(owner, op, model, x)
        if public_path(type(model)) != subject.name:
            return scores
        for name in set(op.parameters) - before:
            _note_inverse(subject, op, name, model)
        changes = {name: _note_tensor(subject, op, name, getattr(scores, name)) for name in _SCORES}
        return dataclasses.replace(scores, **changes)

    subject.plugin.write = write


def _note_tensor(subject: Subject, op, part: str, found):
    def scale(name):
        return tuple(map(scale, name)) if isinstance(name, tuple) else op.Mul(name, FACTOR)

    return subject.note(part, found, scale) if found else found


def _note_inverse(subject: Subject, op, name: str, model) -> None:
    """Change the written-back value of a parameter of the model, or of a part that is no estimator."""
    parameter = op.parameters[name]
    owner = part_of(op.root, parameter.path)
    if isinstance(owner, BaseEstimator) and owner is not model:
        return
    form = parameter.form
    changed = copy.copy(form)
    object.__setattr__(changed, "inverse", lambda value, like: form.inverse(value, like) * FACTOR)
    stem = parameter.attribute.rpartition(".")[2]
    object.__setattr__(parameter, "form", subject.note(f"inverse of {stem}", form, lambda _: changed))


_INSTALL = {
    "loss": _install_loss,
    "penalty": _install_penalty,
    "learning_rate": _install_learning_rate,
    "schedule": _install_schedule,
    "rule": _install_rule,
    "model": _install_model,
}
_GROUPS = {
    "loss": plugins.LOSSES,
    "penalty": plugins.PENALTIES,
    "learning_rate": plugins.LEARNING_RATES,
    "schedule": plugins.SCHEDULES,
    "model": plugins.MODELS,
}


def find_subjects() -> list[Subject]:
    """Return every plugin of this distribution, each class under the longest of its names."""
    found = list(_rules())
    for kind, group in _GROUPS.items():
        names: dict[str, list[str]] = {}
        for info in plugins.list_plugins(group):
            if info.distribution == "ortlearn":
                names.setdefault(info.name if kind == "model" else info.value, []).append(info.name)
        for aliases in names.values():
            name, plugin = max(aliases, key=len), plugins.get(group, aliases[0])
            words = [alias.rpartition(".")[2] for alias in aliases]
            found.append(Subject(kind, name, plugin, (*words, plugin.__name__)))
    return found


def _rules() -> Iterator[Subject]:
    for info in plugins.list_plugins(plugins.GRADIENTS):
        if info.distribution == "ortlearn":
            rules = plugins.get(plugins.GRADIENTS, info.name)
            for domain, op_type in sorted(rules.rules):
                name = f"{domain}.{op_type}" if domain else op_type
                yield Subject("rule", name, (rules, (domain, op_type)), (op_type,))
