"""Resolve a name, a class or an object to a schedule."""

from __future__ import annotations

from typing import Any

from ... import plugins
from ...exceptions import PluginError
from .base import BaseSchedule

__all__ = ["resolve_schedule"]


def resolve_schedule(spec: Any, **shared: Any) -> BaseSchedule:
    """Return the schedule a user asked for: a name, a class or an object.

    Parameters
    ----------
    spec : str, type or BaseSchedule
        An object is returned unchanged.
    **shared
        Parameters, of which a schedule gets those in :attr:`BaseSchedule.shared`.

    Returns
    -------
    BaseSchedule
        Schedule; its parameters are not checked.

    Raises
    ------
    PluginError
        If it is not one of these, or unknown.

    Examples
    --------
    >>> from ortlearn.learning_rates.schedules import resolve_schedule
    >>> resolve_schedule("invscaling", alpha=0.1, power_t=0.5)
    InvScalingSchedule(power_t=0.5)
    """
    kind = plugins.get(plugins.SCHEDULES, spec) if isinstance(spec, str) else spec
    if isinstance(kind, type) and issubclass(kind, BaseSchedule):
        return kind(**{name: value for name, value in shared.items() if name in kind.shared})
    if isinstance(kind, BaseSchedule):
        return kind
    raise PluginError(
        f"{spec!r} is not a schedule: pass a name, or a subclass or an instance of BaseSchedule."
    )
