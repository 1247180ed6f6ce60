"""Composition of the proximal steps of several penalties of one weight."""

from __future__ import annotations

from collections.abc import Sequence

from ..exceptions import PluginError, limit_address
from .base import BasePenalty

__all__ = ["check_proximal_steps", "order_proximal_steps"]

#: Kind of step that may precede another kind, since its penalty is positively homogeneous and the others are
#: functions of a norm (Yu, Y.-L., "On decomposing the proximal map", NIPS 2013).
FIRST = "threshold"


def order_proximal_steps(penalties: Sequence[BasePenalty]) -> list[BasePenalty]:
    """Return penalties in the order of their proximal steps: thresholds first."""
    return sorted(penalties, key=lambda penalty: penalty.proximal_kind != FIRST)


def check_proximal_steps(name: str, penalties: Sequence[BasePenalty], has_length: bool) -> None:
    """Check that the proximal steps of a weight, applied in sequence, are the step of the sum.

    This holds for steps of one kind: thresholds add up, and the smaller of two balls is inside the other.
    """
    steps = [penalty for penalty in penalties if penalty.acts_by_step(has_length)]
    kinds = [penalty.proximal_kind for penalty in steps]
    others = {kind for kind in kinds if kind != FIRST}
    if len(steps) > 1 and (None in kinds or len(others) > 1):
        names = " and ".join(type(penalty).__name__ for penalty in steps)
        raise PluginError(
            f"PerWeightPenalty: the proximal steps of {names} on {name!r} cannot be combined, since "
            "applying them in sequence is not the step of their sum. Keep one of these penalties for the "
            f"weight.{limit_address('combined-penalties')}"
        )
