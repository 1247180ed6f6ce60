"""Groups of plugins: their entry-point names and what one member of each is called."""

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
#: Group of model definitions: what a class of estimators computes.
MODELS = "ortlearn.models"

#: Every group, in the order listings show them.
GROUPS = (LOSSES, PENALTIES, LEARNING_RATES, SCHEDULES, GRADIENTS, MODELS)

#: What one plugin of a group is called in a message.
LABELS = {
    LOSSES: "loss",
    PENALTIES: "penalty",
    LEARNING_RATES: "learning rate",
    SCHEDULES: "schedule",
    GRADIENTS: "gradient rule set",
    MODELS: "model definition",
}


def check_group(group: str) -> str:
    """Return a group, or say which ones exist.

    Examples
    --------
    >>> from ortlearn.plugins.groups import check_group
    >>> check_group("ortlearn.losses")
    'ortlearn.losses'
    """
    if group not in GROUPS:
        raise PluginError(f"{group!r} is not a group of plugins; use one of {', '.join(GROUPS)}.")
    return group
