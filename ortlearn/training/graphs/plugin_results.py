"""Checks of what penalties and learning rates of other packages write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...exceptions import PluginError
from ...graphs import GraphBuilder, TensorType
from ...graphs.types import written_types
from ...penalties import BasePenalty
from .names import RATE

__all__ = ["check_penalty", "check_states", "check_update"]

#: Package whose own plugins are tested, and not checked again.
PACKAGE = f"{__name__.partition('.')[0]}."


def check_penalty(penalty: Any, op: GraphBuilder, weight: str, written: Any) -> None:
    """Raise a PluginError unless the penalty of a weight is a scalar."""
    while isinstance(getattr(penalty, "penalty", None), BasePenalty):  # such as around the starting weights
        penalty = penalty.penalty
    known = op.type(weight)
    if not _is_own(penalty) and written is not None and known is not None:
        method = f"forward of {type(penalty).__name__}"
        types = written_types(op, {weight: known})
        _check_shape(types, written, (), f"{method} for the penalty of {weight}")


def check_states(rate: Any, states: Any) -> None:
    """Raise a PluginError unless states of a weight are arrays by name."""
    if not isinstance(states, Mapping) or not all(hasattr(own, "shape") for own in states.values()):
        raise PluginError(
            f"init of {type(rate).__name__} returned a {type(states).__name__}: return a dict of arrays."
        )


def check_update(
    rate: Any, op: GraphBuilder, weight: str, gradient: str, states: Mapping[str, str], updated: Any
) -> None:
    """Raise a PluginError unless a new weight and its new states are like those before."""
    method, known = f"update of {type(rate).__name__}", op.type(weight)
    if _is_own(rate) or known is None:
        return
    if not (isinstance(updated, tuple) and len(updated) == 2 and isinstance(updated[1], Mapping)):
        raise PluginError(f"{method} returned {updated!r}: return the new weight, and a dict of new states.")
    new, after = updated
    if after.keys() != states.keys():
        raise PluginError(f"{method} returned the states {sorted(after)}, but init has {sorted(states)}.")
    types = {weight: known, gradient: known, RATE: TensorType(known.elem_type, ())}
    types |= {own: found for own in states.values() if (found := op.type(own)) is not None}
    written = written_types(op, types)
    _check_shape(written, new, known.shape, f"{method} for the new weight")
    for name, own in states.items():
        _check_shape(written, after[name], types[own].shape, f"{method} for the new state {name!r}")


def _is_own(plugin: Any) -> bool:
    """Return whether a plugin belongs to this package."""
    return type(plugin).__module__.startswith(PACKAGE)


def _check_shape(types: Mapping[str, TensorType], written: Any, shape: Any, what: str) -> None:
    """Raise a PluginError if a written tensor has another shape, as far as shapes are known."""
    if not isinstance(written, str):
        raise PluginError(f"{what} returned {written!r}: return a name, such as op.Mul(a, b).")
    found = types.get(written)
    if found is not None and None not in (found.shape, shape) and found.shape != shape:
        raise PluginError(f"{what} returned a tensor of shape {found.shape}, and must return one of {shape}.")
