"""Checks for plugin authors."""

from .gradient_rules import check_gradient_rule, make_node_model
from .learning_rates import check_learning_rate
from .losses import check_loss
from .models import check_model
from .objectives import check_objective
from .penalties import check_penalty

__all__ = [
    "check_gradient_rule",
    "check_learning_rate",
    "check_loss",
    "check_model",
    "check_objective",
    "check_penalty",
    "make_node_model",
]
