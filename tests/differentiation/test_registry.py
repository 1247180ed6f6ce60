"""Sets of rules, plugins with rules, and rules registered in a process."""

from __future__ import annotations

import types

import pytest

from ortlearn import plugins
from ortlearn.differentiation.registry import (
    NO_GRADIENT,
    RuleSet,
    declare_without_gradient,
    gradient_rule,
    load_rules,
    temporary_rules,
)
from ortlearn.exceptions import PluginError


def rule(op, node, grad):
    return grad


def other(op, node, grad):
    return None


def test_three_states():
    table = load_rules()
    assert table.find("", "Exp").op_type == "Exp"
    assert table.find("", "ArgMax") == NO_GRADIENT
    assert table.find("", "Twist") is None
    assert table.find("ai.onnx", "Exp") == table.find("", "Exp")
    assert not table.failures


def test_no_operator_is_in_two_sets():
    table = load_rules()
    assert [key for key in table.keys() if len(table.owners(key)) > 1] == []


def test_register_in_a_process():
    with temporary_rules():
        gradient_rule("Twist", "Turn", domain="mine")(rule)
        assert load_rules().find("mine", "Turn").function is rule
        declare_without_gradient("Bin", domain="mine")
        assert load_rules().find("mine", "Bin") == NO_GRADIENT
    assert load_rules().find("mine", "Turn") is None and load_rules().find("mine", "Bin") is None


def test_existing_rule_requires_overwrite():
    with temporary_rules():
        with pytest.raises(PluginError, match="Exp already has a rule: arithmetic"):
            gradient_rule("Exp")(rule)
        gradient_rule("Exp", overwrite=True)(rule)
        assert load_rules().find("", "Exp").function is rule
    assert load_rules().find("", "Exp").function is not rule


def test_same_rule_may_be_registered_twice():
    with temporary_rules():
        gradient_rule("Twist")(rule)
        gradient_rule("Twist")(rule)
        with pytest.raises(PluginError, match="Twist"):
            gradient_rule("Twist")(other)


def test_set_has_one_rule_per_operator():
    rules = RuleSet("mine")
    rules.rule("Twist")(rule)
    with pytest.raises(PluginError, match="'mine' already"):
        rules.rule("Twist")(other)
    with pytest.raises(PluginError, match="'mine' already"):
        rules.without_gradient("Twist")
    rules.rule("Twist", overwrite=True)(other)
    assert rules.rules["", "Twist"].function is other


@pytest.mark.parametrize("as_module", [False, True])
def test_rules_of_a_plugin(as_module):
    rules = RuleSet("mine")
    rules.rule("Twist", domain="mine")(rule)
    loaded = types.SimpleNamespace(RULES=rules) if as_module else rules
    with plugins.temporary(plugins.GRADIENTS, "mine", loaded):
        assert load_rules().find("mine", "Twist").function is rule
    assert load_rules().find("mine", "Twist") is None


def test_broken_plugin_does_not_affect_others():
    with plugins.temporary(plugins.GRADIENTS, "mine", 3):
        table = load_rules()
        assert "without a RuleSet named RULES" in table.failures[0]
        assert table.find("", "Exp") is not None


def test_two_plugins_with_one_operator():
    first, second = RuleSet("first"), RuleSet("second")
    first.rule("Twist")(rule)
    second.rule("Twist")(other)
    with (
        plugins.temporary(plugins.GRADIENTS, "first", first),
        plugins.temporary(plugins.GRADIENTS, "second", second),
    ):
        with pytest.raises(PluginError, match="Twist: first and second"):
            load_rules().find("", "Twist")
        with temporary_rules():
            gradient_rule("Twist", overwrite=True)(rule)
            assert load_rules().find("", "Twist").function is rule
