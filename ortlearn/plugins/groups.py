"""Groups of plugins: names of entry points, and labels for messages."""

from __future__ import annotations

from ..exceptions import PluginError

__all__ = [
    "GRADIENTS",
    "GROUPS",
    "LABELS",
    "LEARNING_RATES",
    "LOSSES",
    "MODELS",
    "PENALTIES",
    "SCHEDULES",
    "check_group",
]

#: Group of losses.
LOSSES = "ortlearn.losses"
#: Group of penalties.
PENALTIES = "ortlearn.penalties"
#: Group of learning rates: updates and solvers.
LEARNING_RATES = "ortlearn.learning_rates"
#: Group of schedules: rates by epoch.
SCHEDULES = "ortlearn.schedules"
#: Group of gradient rules: sets of rules for operators.
GRADIENTS = "ortlearn.gradients"
#: Group of model definitions: graphs of classes of estimators.
MODELS = "ortlearn.models"

#: All groups, in the order of listings.
GROUPS = (LOSSES, PENALTIES, LEARNING_RATES, SCHEDULES, GRADIENTS, MODELS)

#: Name of a plugin of each group in messages.
LABELS = {
    LOSSES: "loss",
    PENALTIES: "penalty",
    LEARNING_RATES: "learning rate",
    SCHEDULES: "schedule",
    GRADIENTS: "gradient rule set",
    MODELS: "model definition",
}


def check_group(group: str) -> str:
    """Return a group, or raise an error that lists the existing ones."""
    if group not in GROUPS:
        raise PluginError(f"{group!r} is not a group of plugins. Use one of {', '.join(GROUPS)}.")
    return group
