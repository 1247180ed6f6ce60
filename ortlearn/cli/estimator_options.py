"""Options of the command line for the parameters of an estimator, from its signature and its docstring."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
from collections.abc import Sequence
from numbers import Real
from typing import Any

from sklearn.utils._param_validation import validate_parameter_constraints

from .. import plugins
from ..learning_rates import resolve_learning_rate
from ..parameters import OTHER_NAMES
from ..problem.configuration import check_scoring

__all__ = [
    "add_nested",
    "add_parameters",
    "check_parameters",
    "documented",
    "given_parameters",
    "literal",
    "set_nested",
]

#: Parameters that are set by other arguments: MODEL and --progress.
LEFT_OUT = ("estimator", "verbose")
#: Parameters that name plugins.
GROUPS = {
    "learning_loss": plugins.LOSSES,
    "learning_penalty": plugins.PENALTIES,
    "learning_rate": plugins.LEARNING_RATES,
}
#: Plugin that a number stands for, and what a parameter of a plugin names.
NESTED_GROUPS = {"learning_rate": plugins.SCHEDULES, "schedule": plugins.SCHEDULES}
#: Defaults that differ from those of the estimator, with the reason.
DEFAULTS = {"warm_start": True}
REASONS = {"warm_start": "It is the default of the command line, which is made for retraining models."}
_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<type>.+)$")
#: Reference of Sphinx, such as :class:`~ortlearn.losses.HuberLoss`.
_ROLE = re.compile(r":\w+:`~?([^`]*)`")


def documented(estimator: type) -> dict[str, tuple[str, str]]:
    """Return type and description of each parameter, from a numpydoc docstring."""
    doc = inspect.cleandoc(estimator.__doc__ or "")
    section = doc.partition("\nParameters\n")[2].partition("\nAttributes\n")[0].partition("\nSee Also\n")[0]
    found: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for line in section.splitlines()[1:]:
        entry = _ENTRY.match(line)
        if entry is not None:
            names = entry["names"].split(", ")
            found.update(dict.fromkeys(names, (entry["type"], "")))
        elif line.startswith(" "):
            found.update({name: (found[name][0], f"{found[name][1]} {line.strip()}") for name in names})
    return {
        name: (kind, _ROLE.sub(r"\1", text.strip()).replace("``", "")) for name, (kind, text) in found.items()
    }


def add_parameters(parser: argparse.ArgumentParser, estimator: type) -> None:
    """Add an option for each parameter of an estimator; only given options are in the namespace."""
    group = parser.add_argument_group(
        "parameters of the training",
        "Those of ortlearn.OrtGradientOptimizer, under the same names. Values are numbers, True, False, "
        "None, lists or dictionaries as Python writes them, and text otherwise.",
    )
    described = documented(estimator)
    for name, parameter in inspect.signature(estimator).parameters.items():
        if name in LEFT_OUT:
            continue
        kind, text = described.get(name, ("", ""))
        default = DEFAULTS.get(name, parameter.default)
        text = " ".join(filter(None, (text, REASONS.get(name), _known(name), f"(default: {default!r})")))
        settings: dict[str, Any] = {
            "dest": name,
            "default": argparse.SUPPRESS,
            "help": text.replace("%", "%%"),
        }
        if estimator._parameter_constraints[name] == ["boolean"]:  # type: ignore[attr-defined]
            settings["action"] = argparse.BooleanOptionalAction
        elif "list of str" in kind:
            settings |= {
                "action": "append",
                "metavar": "NAME",
                "help": f"{text} May be repeated.",
            }
        else:
            settings |= {"type": literal, "metavar": "VALUE"}
        names = [name, *(other for other, present in OTHER_NAMES.items() if present == name)]
        group.add_argument(*(f"--{name.replace('_', '-')}" for name in names), **settings)


def add_nested(parser: argparse.ArgumentParser) -> None:
    """Add the option for parameters of plugins and of the model."""
    parser.add_argument(
        "--set",
        dest="nested",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of a plugin or of the model, as scikit-learn names it, such as "
        "learning_rate__eta0=0.01, learning_penalty__l2=0.1 or learning_rate__learning_rate=cosine; "
        "may be repeated",
    )


def _known(name: str) -> str:
    """Return the names of the plugins that a parameter can name."""
    if name not in GROUPS:
        return ""
    names = sorted({info.name for info in plugins.list_plugins(GROUPS[name], load=False)}, key=str.lower)
    return f"Known: {', '.join(names)}."


def literal(text: str) -> Any:
    """Return the value of a Python literal, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def given_parameters(options: argparse.Namespace, estimator: type) -> dict[str, Any]:
    """Return the parameters that were given, with the defaults of the command line."""
    names = [name for name in inspect.signature(estimator).parameters if name not in LEFT_OUT]
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return {**DEFAULTS, **given}


def check_parameters(trainer: Any) -> None:
    """Raise an error for invalid parameters, before any data is read."""
    params, constraints = trainer.get_params(deep=False), trainer._parameter_constraints
    for name, value in params.items():
        if (
            isinstance(value, bool)
            and constraints[name] != "no_validation"
            and "boolean" not in constraints[name]
        ):
            params[name] = str(value)  # a boolean is also an integer in Python
    validate_parameter_constraints(constraints, params, caller_name=type(trainer).__name__)
    check_scoring(params["scoring"])


def set_nested(trainer: Any, items: Sequence[str]) -> None:
    """Set parameters of plugins and of the model, those with the shortest names first.

    A plugin that is given by name is first replaced by an object with its default parameters.
    """
    pairs = []
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or "__" not in name:
            raise ValueError(f"--set {item}: must be NAME=VALUE, such as learning_rate__eta0=0.01.")
        pairs.append((name.strip(), literal(value.strip())))
    for name, value in sorted(pairs, key=lambda pair: pair[0].count("__")):
        _make_objects(trainer, name)
        try:
            trainer.set_params(**{name: value})
        except ValueError as error:
            raise ValueError(f"--set {name}: {error}") from error
    if any(name.startswith("estimator__") for name, _ in pairs):
        _check_model(trainer.estimator)


def _check_model(model: Any) -> None:
    """Raise an error for parameters that a scikit-learn model, or an estimator inside it, does not accept."""
    for part in (model, *model.get_params().values()):
        if hasattr(part, "_validate_params") and not isinstance(part, type):
            try:
                part._validate_params()
            except ValueError as error:
                raise ValueError(f"--set: {error}") from error


def _make_objects(trainer: Any, name: str) -> None:
    """Replace names of plugins on the path to a nested parameter by objects."""
    owner, groups = trainer, GROUPS
    for part in name.split("__")[:-1]:
        value = getattr(owner, part, None)
        plain = isinstance(value, str | Real) or value is None
        if plain and hasattr(owner, part) and part in groups:
            value = _object(groups[part], value, f"--set {name}: {part}={value!r}")
            owner.set_params(**{part: value})
        owner, groups = value, NESTED_GROUPS


def _object(group: str, value: Any, given: str) -> Any:
    if value is None or value == "auto":
        raise ValueError(f"{given} has no parameters. Choose a plugin by its name first.")
    if isinstance(value, Real):
        return resolve_learning_rate(value)
    return plugins.get(group, value)()
