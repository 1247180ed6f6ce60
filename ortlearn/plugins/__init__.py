"""Losses, penalties, learning rates, schedules and gradient rules that distributions add by entry points.

The groups are constants: ``LOSSES``, ``PENALTIES``, ``LEARNING_RATES``, ``SCHEDULES`` and ``GRADIENTS``;
``GROUPS`` has all of them.
"""

from .creation import blamed, create
from .discovery import PluginInfo
from .groups import GRADIENTS, GROUPS, LEARNING_RATES, LOSSES, PENALTIES, SCHEDULES
from .registry import get, list_plugins, refresh, register, temporary, unregister

__all__ = [
    "GRADIENTS",
    "GROUPS",
    "LEARNING_RATES",
    "LOSSES",
    "PENALTIES",
    "SCHEDULES",
    "PluginInfo",
    "blamed",
    "create",
    "get",
    "list_plugins",
    "refresh",
    "register",
    "temporary",
    "unregister",
]
