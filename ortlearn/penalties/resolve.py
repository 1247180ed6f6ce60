"""Resolve a name, a class, an object or a dictionary to a penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import plugins
from .base import BasePenalty
from .per_weight import PerWeightPenalty

__all__ = ["resolve_penalty"]


def resolve_penalty(spec: Any) -> BasePenalty:
    """Return a new penalty from None, a name, a class, an object, or a dictionary of these by weight."""
    if isinstance(spec, Mapping):
        spec = PerWeightPenalty(dict(spec))
    penalty = plugins.create(plugins.PENALTIES, "none" if spec is None else spec, BasePenalty)
    penalty.check()
    return penalty
