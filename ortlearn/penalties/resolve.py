"""Resolve a name, a class, an object or a dictionary to a penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import plugins
from .base import BasePenalty
from .per_weight import PerWeightPenalty

__all__ = ["resolve_penalty"]


def resolve_penalty(spec: Any) -> BasePenalty:
    """Return the penalty a user asked for: None, a name, a class, an object, or a dictionary of them.

    Parameters
    ----------
    spec : None, str, type, BasePenalty or dict
        None means no penalty; a dictionary has penalties by names of weights (:class:`PerWeightPenalty`).

    Returns
    -------
    BasePenalty
        New object.

    Raises
    ------
    PluginError
        If it is not one of these, or unknown, or if a parameter is invalid.

    Examples
    --------
    >>> from ortlearn.penalties import resolve_penalty
    >>> resolve_penalty("l1")
    L1Penalty()
    >>> resolve_penalty({"coefs_[0]": "l1"})
    PerWeightPenalty(penalties={'coefs_[0]': 'l1'})
    """
    if isinstance(spec, Mapping):
        spec = PerWeightPenalty(dict(spec))
    penalty = plugins.create(plugins.PENALTIES, "none" if spec is None else spec, BasePenalty)
    penalty.check()
    return penalty
