"""Losses, penalties, learning rates, schedules, gradient rules and models that distributions declare.

The groups are constants: ``LOSSES``, ``PENALTIES``, ``LEARNING_RATES``, ``SCHEDULES``, ``GRADIENTS`` and
``MODELS``; ``GROUPS`` has all of them.
"""

from .creation import blamed, create
from .discovery import PluginInfo
from .groups import GRADIENTS, GROUPS, LEARNING_RATES, LOSSES, MODELS, PENALTIES, SCHEDULES
from .lookup import get, has, list_plugins
from .registry import refresh, register, temporary, unregister, version

__all__ = [
    "GRADIENTS",
    "GROUPS",
    "LEARNING_RATES",
    "LOSSES",
    "MODELS",
    "PENALTIES",
    "SCHEDULES",
    "PluginInfo",
    "blamed",
    "create",
    "get",
    "has",
    "list_plugins",
    "refresh",
    "register",
    "temporary",
    "unregister",
    "version",
]
