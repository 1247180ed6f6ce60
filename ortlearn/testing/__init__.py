"""Checkers for the authors of plugins."""

from .gradient_rules import check_gradient_rule, make_node_model
from .learning_rates import check_learning_rate

__all__ = ["check_gradient_rule", "check_learning_rate", "make_node_model"]
