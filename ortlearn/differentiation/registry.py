"""Table of gradient rules by domain and operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from .. import plugins
from ..exceptions import PluginError
from .rule_set import NO_GRADIENT, Key, Rule, RuleSet, normalize_domain, same_function, shown

__all__ = [
    "NO_GRADIENT",
    "Rule",
    "RuleSet",
    "RuleTable",
    "declare_without_gradient",
    "gradient_rule",
    "load_rules",
    "normalize_domain",
    "registered_rules",
    "temporary_rules",
]

#: Rules registered in this process; they take precedence over those of plugins.
_REGISTERED = RuleSet("registered in this process")


def gradient_rule(*op_types: str, domain: str = "", broadcast: bool = False, overwrite: bool = False) -> Any:
    """Register the gradient rule of one or more operators in this process.

    A rule is ``rule(op, node, grad)``: it writes nodes with the builder ``op``, reads the node's
    inputs ``node.I(i)``, outputs ``node.O(i)``, gradients of outputs ``node.GO(i)`` and attributes
    ``node.attribute(name, default)``, and returns one name or None per input. ``grad`` is
    ``node.GO(0)``.

    Parameters
    ----------
    *op_types : str
        Operators.
    domain : str, default=""
        Their domain.
    broadcast : bool, default=False
        Whether the returned gradients have the shape of the output, to be summed to that of each input.
    overwrite : bool, default=False
        Whether an existing rule, of a plugin or registered before, may be replaced.

    Returns
    -------
    callable
        Decorator.

    Raises
    ------
    PluginError
        If the operator has a rule, or is declared without gradient, and ``overwrite`` is False.

    Examples
    --------
    >>> from ortlearn.differentiation.registry import gradient_rule, load_rules, temporary_rules
    >>> with temporary_rules():
    ...     @gradient_rule("Double", domain="mine")
    ...     def double(op, node, grad):
    ...         # y = 2 x, dx = 2 dy
    ...         return op.Mul(grad, 2.0)
    ...     load_rules().find("mine", "Double").function is double
    True
    """
    domain = normalize_domain(domain)

    def add(function: Any) -> Any:
        table = load_rules()
        for op_type in op_types:
            key = (domain, op_type)
            if (
                not overwrite
                and table.owners(key)
                and not same_function(_REGISTERED.rules.get(key), function)
            ):
                raise PluginError(
                    f"{shown(key)} already has a rule: {', '.join(table.owners(key))}. "
                    "Pass overwrite=True to replace its rule in this process."
                )
        return _REGISTERED.rule(*op_types, domain=domain, broadcast=broadcast, overwrite=True)(function)

    return add


def declare_without_gradient(*op_types: str, domain: str = "") -> None:
    """Declare operators without gradient, in this process.

    Parameters
    ----------
    *op_types : str
        Operators.
    domain : str, default=""
        Their domain.

    Examples
    --------
    >>> from ortlearn.differentiation.registry import declare_without_gradient, load_rules, temporary_rules
    >>> with temporary_rules():
    ...     declare_without_gradient("Bin", domain="mine")
    ...     load_rules().find("mine", "Bin")
    'no gradient'
    """
    _REGISTERED.without_gradient(*op_types, domain=domain)


def registered_rules() -> frozenset:
    """Return a key of the rules registered in this process, for caches of gradient graphs."""
    return frozenset(_REGISTERED.rules.items()) | frozenset(_REGISTERED.no_gradient)


@contextmanager
def temporary_rules() -> Iterator[None]:
    """Remove rules registered within a ``with`` block at its end."""
    rules, no_gradient = dict(_REGISTERED.rules), set(_REGISTERED.no_gradient)
    try:
        yield
    finally:
        _REGISTERED.rules, _REGISTERED.no_gradient = rules, no_gradient


class RuleTable:
    """Registered rules and those of rule sets; ``failures`` are reasons why other sets were not loaded."""

    def __init__(self, sets: list[RuleSet], failures: list[str] | tuple[str, ...] = ()) -> None:
        self.failures = list(failures)
        self._sets: dict[Key, list[RuleSet]] = {}
        for rules in sets:
            for key in rules.keys():
                self._sets.setdefault(key, []).append(rules)

    def owners(self, key: Key) -> list[str]:
        """Return the names of the sets with an operator."""
        found = list(self._sets.get(key, []))
        return [rules.name for rules in ([_REGISTERED] if key in _REGISTERED.keys() else []) + found]

    def find(self, domain: str, op_type: str) -> Rule | str | None:
        """Return the rule of an operator, ``NO_GRADIENT`` if it is declared so, or None."""
        key = (normalize_domain(domain), op_type)
        found = [_REGISTERED] if key in _REGISTERED.keys() else self._sets.get(key, [])
        if not found:
            return None
        if len(found) > 1:
            raise PluginError(
                f"Two sets of gradient rules have {shown(key)}: {' and '.join(r.name for r in found)}. "
                "Uninstall one, or choose with gradient_rule(..., overwrite=True)."
            )
        return NO_GRADIENT if key in found[0].no_gradient else found[0].rules[key]

    def keys(self) -> set[Key]:
        """Return every operator with a rule or declared without gradient."""
        return set(self._sets) | _REGISTERED.keys()


def load_rules() -> RuleTable:
    """Return all rules of plugins, including the built-in ones, and those registered.

    Sets that cannot be loaded are omitted; the error about an unknown operator has the reason.
    """
    return _rules_of(plugins.version())


@lru_cache(maxsize=1)
def _rules_of(version: int) -> RuleTable:
    """Return the rules of plugins since the last change."""
    sets, failures = [], []
    for info in plugins.list_plugins(plugins.GRADIENTS):
        try:
            loaded = plugins.get(plugins.GRADIENTS, info.name)
            sets.append(_as_rule_set(loaded, info.name))
        except PluginError as error:
            failures.append(str(error))
    return RuleTable(sets, failures)


def _as_rule_set(loaded: Any, name: str) -> RuleSet:
    found = loaded if isinstance(loaded, RuleSet) else getattr(loaded, "RULES", None)
    if not isinstance(found, RuleSet):
        raise PluginError(f"The gradient plugin {name!r} is {loaded!r}, without a RuleSet named RULES.")
    return found
