"""Which operator has which gradient rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import plugins
from ..exceptions import PluginError

__all__ = [
    "NO_GRADIENT",
    "Rule",
    "RuleSet",
    "RuleTable",
    "declare_without_gradient",
    "gradient_rule",
    "load_rules",
    "normalize_domain",
    "temporary_rules",
]

Key = tuple[str, str]

#: What a lookup returns for an operator declared without gradient.
NO_GRADIENT = "no gradient"


def normalize_domain(domain: str) -> str:
    """Return the one spelling of a domain: the default one has two in ONNX."""
    return "" if domain == "ai.onnx" else domain


@dataclass(frozen=True)
class Rule:
    """The gradient rule of one operator.

    Parameters
    ----------
    op_type : str
        Operator.
    domain : str
        Its domain, "" for the default one.
    function : callable
        ``function(op, node, grad)`` writes nodes with the builder ``op`` and returns the gradient
        of every input of ``node``: one name or None each.
    broadcast : bool
        Whether the gradients it returns have the shape of the output: they are then
        summed to the shape of each input.
    source : str
        Set of rules it belongs to.
    """

    op_type: str
    domain: str
    function: Callable[..., Any]
    broadcast: bool = False
    source: str = ""


class RuleSet:
    """A set of gradient rules: what an entry point of the group ``ortlearn.gradients`` names.

    Parameters
    ----------
    name : str
        Shown in messages.

    Attributes
    ----------
    rules : dict of (str, str) to Rule
        Rules by domain and operator.
    no_gradient : set of (str, str)
        Operators declared without gradient.

    Examples
    --------
    >>> from ortlearn.differentiation.registry import RuleSet
    >>> RULES = RuleSet("mine")
    >>> @RULES.rule("Neg")
    ... def neg(op, node, grad):
    ...     # y = -x, dx = -dy
    ...     return op.Neg(grad)
    >>> sorted(RULES.rules)
    [('', 'Neg')]
    """

    def __init__(self, name: str):
        self.name = name
        self.rules: dict[Key, Rule] = {}
        self.no_gradient: set[Key] = set()

    def rule(self, *op_types: str, domain: str = "", broadcast: bool = False, overwrite: bool = False):
        """Return a decorator that adds a rule for one or more operators.

        Parameters
        ----------
        *op_types : str
            Operators the function is the rule of.
        domain : str, default=""
            Their domain.
        broadcast : bool, default=False
            Whether gradients come in the shape of the output, to be summed to each input's.
        overwrite : bool, default=False
            Whether a rule of this set may be replaced.

        Returns
        -------
        callable
            Decorator; it returns the function unchanged.

        Raises
        ------
        PluginError
            If the set has something for the operator already.
        """
        domain = normalize_domain(domain)

        def add(function):
            for op_type in op_types:
                key = (domain, op_type)
                old = self.rules.get(key)
                if (
                    (old is not None or key in self.no_gradient)
                    and not overwrite
                    and not _same(old, function)
                ):
                    raise PluginError(
                        f"{_shown(key)} has a rule in the set {self.name!r} already; "
                        "pass overwrite=True to replace it."
                    )
                self.no_gradient.discard(key)
                self.rules[key] = Rule(op_type, domain, function, broadcast, self.name)
            return function

        return add

    def without_gradient(self, *op_types: str, domain: str = "") -> None:
        """Declare operators that let no gradient through, their derivative being zero or undefined.

        Parameters
        ----------
        *op_types : str
            Operators.
        domain : str, default=""
            Their domain.

        Raises
        ------
        PluginError
            If one has a rule in this set.
        """
        for op_type in op_types:
            key = (normalize_domain(domain), op_type)
            if key in self.rules:
                raise PluginError(f"{_shown(key)} has a rule in the set {self.name!r} already.")
            self.no_gradient.add(key)

    def keys(self) -> set[Key]:
        """Return every operator the set says something about."""
        return set(self.rules) | self.no_gradient


def _same(old: Rule | None, function) -> bool:
    # A notebook cell may run twice.
    names = ("__module__", "__qualname__")
    return old is not None and all(
        getattr(old.function, name, None) == getattr(function, name, object()) for name in names
    )


def _shown(key: Key) -> str:
    return key[1] if not key[0] else f"{key[0]}::{key[1]}"


#: Rules registered in this process; they go before those of plugins.
_REGISTERED = RuleSet("registered in this process")


def gradient_rule(*op_types: str, domain: str = "", broadcast: bool = False, overwrite: bool = False):
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
        Whether the gradients come in the shape of the output, to be summed to each input's.
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

    def add(function):
        table = load_rules()
        for op_type in op_types:
            key = (domain, op_type)
            if not overwrite and table.owners(key) and not _same(_REGISTERED.rules.get(key), function):
                raise PluginError(
                    f"{_shown(key)} is known already: {', '.join(table.owners(key))}. "
                    "Pass overwrite=True to replace its rule in this process."
                )
        return _REGISTERED.rule(*op_types, domain=domain, broadcast=broadcast, overwrite=True)(function)

    return add


def declare_without_gradient(*op_types: str, domain: str = "") -> None:
    """Declare, in this process, operators that let no gradient through.

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


@contextmanager
def temporary_rules() -> Iterator[None]:
    """Forget, at the end of a ``with`` block, the rules registered within it."""
    rules, no_gradient = dict(_REGISTERED.rules), set(_REGISTERED.no_gradient)
    try:
        yield
    finally:
        _REGISTERED.rules, _REGISTERED.no_gradient = rules, no_gradient


class RuleTable:
    """Every rule known now.

    Parameters
    ----------
    sets : list of RuleSet
        Sets declared by plugins.
    failures : list of str, default=()
        Why other sets could not be loaded.
    """

    def __init__(self, sets: list[RuleSet], failures: list[str] | tuple[str, ...] = ()):
        self.failures = list(failures)
        self._sets: dict[Key, list[RuleSet]] = {}
        for rules in sets:
            for key in rules.keys():
                self._sets.setdefault(key, []).append(rules)

    def owners(self, key: Key) -> list[str]:
        """Return the names of the sets that know an operator."""
        found = list(self._sets.get(key, []))
        return [rules.name for rules in ([_REGISTERED] if key in _REGISTERED.keys() else []) + found]

    def find(self, domain: str, op_type: str) -> Rule | str | None:
        """Return the rule of an operator, ``NO_GRADIENT`` where it is declared without, else None.

        Parameters
        ----------
        domain : str
            Domain.
        op_type : str
            Operator.

        Returns
        -------
        Rule or str or None
            One of three states: rule, declared without gradient, unknown.

        Raises
        ------
        PluginError
            If two plugins have something for the operator.
        """
        key = (normalize_domain(domain), op_type)
        found = [_REGISTERED] if key in _REGISTERED.keys() else self._sets.get(key, [])
        if not found:
            return None
        if len(found) > 1:
            raise PluginError(
                f"Two sets of gradient rules know {_shown(key)}: {' and '.join(r.name for r in found)}. "
                "Uninstall one, or choose with gradient_rule(..., overwrite=True)."
            )
        return NO_GRADIENT if key in found[0].no_gradient else found[0].rules[key]

    def keys(self) -> set[Key]:
        """Return every operator with a rule or declared without gradient."""
        return set(self._sets) | _REGISTERED.keys()


def load_rules() -> RuleTable:
    """Return every rule known now: those of plugins (built-ins are plugins) and those registered.

    A set that cannot be loaded is left out; the error about an unknown operator tells why.

    Returns
    -------
    RuleTable
        The rules.
    """
    sets, failures = [], []
    for info in plugins.list_plugins(plugins.GRADIENTS):
        try:
            loaded = plugins.get(plugins.GRADIENTS, info.name)
            sets.append(_as_rule_set(loaded, info.name))
        except PluginError as error:
            failures.append(str(error))
    return RuleTable(sets + _missing_builtins(sets), failures)


def _as_rule_set(loaded: Any, name: str) -> RuleSet:
    found = loaded if isinstance(loaded, RuleSet) else getattr(loaded, "RULES", None)
    if not isinstance(found, RuleSet):
        raise PluginError(f"The gradient plugin {name!r} is {loaded!r}, which holds no RuleSet named RULES.")
    return found


def _missing_builtins(sets):
    # Until setup.cfg declares them.
    import importlib

    have = {rules.name for rules in sets}
    names = "arithmetic functions activations linear_algebra einsum convolutions reductions shapes gather_scatter "
    names += "networks pooling control_flow microsoft ml nondifferentiable losses normalization"
    found = []
    for name in names.split():
        if name not in have:
            try:
                found.append(importlib.import_module(f"ortlearn.differentiation.rules.{name}").RULES)
            except ModuleNotFoundError:
                pass
    return found
