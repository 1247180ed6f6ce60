"""Resolve a name, a class or an object to a schedule."""

from __future__ import annotations

from typing import Any

from ... import plugins
from ...exceptions import PluginError
from .base import BaseSchedule

__all__ = ["resolve_schedule"]


def resolve_schedule(spec: Any, **shared: Any) -> BaseSchedule:
    """Return a schedule from a name, a class or an object; it gets those of ``shared`` that it declares."""
    kind = plugins.get(plugins.SCHEDULES, spec) if isinstance(spec, str) else spec
    if isinstance(kind, type) and issubclass(kind, BaseSchedule):
        return kind(**{name: value for name, value in shared.items() if name in kind.shared})
    if isinstance(kind, BaseSchedule):
        return kind
    raise PluginError(
        f"{spec!r} is not a schedule: pass a name, or a subclass or an instance of BaseSchedule."
    )
