"""Gradient rules, and sets of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..exceptions import PluginError

__all__ = ["NO_GRADIENT", "Key", "Rule", "RuleSet", "normalize_domain", "same_function", "shown"]

Key = tuple[str, str]

#: Result of a lookup for an operator declared without gradient.
NO_GRADIENT = "no gradient"


def normalize_domain(domain: str) -> str:
    """Return the normalized name of a domain: the default domain has two names in ONNX."""
    return "" if domain == "ai.onnx" else domain


@dataclass(frozen=True)
class Rule:
    """The gradient rule of one operator, ``function(op, node, grad)``.

    It writes nodes with the builder ``op`` and returns a name or None for each input of ``node``. If
    ``broadcast``, gradients have the shape of the output, and are then summed to the shapes of the inputs.
    """

    op_type: str
    domain: str
    function: Callable[..., Any]
    broadcast: bool = False
    source: str = ""


class RuleSet:
    """A set of gradient rules, declared as an entry point of the group ``ortlearn.gradients``.

    Parameters
    ----------
    name : str
        Name for messages.

    Attributes
    ----------
    rules : dict of (str, str) to Rule
        Rules by domain and operator.
    no_gradient : set of (str, str)
        Operators declared without gradient.

    Examples
    --------
    >>> from ortlearn.differentiation.rule_set import RuleSet
    >>> RULES = RuleSet("mine")
    >>> @RULES.rule("Neg")
    ... def neg(op, node, grad):
    ...     # y = -x, dx = -dy
    ...     return op.Neg(grad)
    >>> sorted(RULES.rules)
    [('', 'Neg')]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[Key, Rule] = {}
        self.no_gradient: set[Key] = set()

    def rule(self, *op_types: str, domain: str = "", broadcast: bool = False, overwrite: bool = False) -> Any:
        """Return a decorator that adds a rule for one or more operators."""
        domain = normalize_domain(domain)

        def add(function: Any) -> Any:
            for op_type in op_types:
                key = (domain, op_type)
                old = self.rules.get(key)
                if (
                    (old is not None or key in self.no_gradient)
                    and not overwrite
                    and not same_function(old, function)
                ):
                    raise PluginError(
                        f"{shown(key)} has a rule in the set {self.name!r} already; "
                        "pass overwrite=True to replace it."
                    )
                self.no_gradient.discard(key)
                self.rules[key] = Rule(op_type, domain, function, broadcast, self.name)
            return function

        return add

    def without_gradient(self, *op_types: str, domain: str = "") -> None:
        """Declare operators without gradient, whose derivative is zero or undefined."""
        for op_type in op_types:
            key = (normalize_domain(domain), op_type)
            if key in self.rules:
                raise PluginError(f"{shown(key)} has a rule in the set {self.name!r} already.")
            self.no_gradient.add(key)

    def keys(self) -> set[Key]:
        """Return every operator with a rule or declared without gradient."""
        return set(self.rules) | self.no_gradient


def same_function(old: Rule | None, function: Any) -> bool:
    """Return whether a function redefines that of a rule, as when a notebook cell runs twice."""
    names = ("__module__", "__qualname__")
    return old is not None and all(
        getattr(old.function, name, None) == getattr(function, name, object()) for name in names
    )


def shown(key: Key) -> str:
    """Return the name of an operator for messages."""
    return key[1] if not key[0] else f"{key[0]}::{key[1]}"
