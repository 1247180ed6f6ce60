"""Proximal steps that meet on one weight."""

from __future__ import annotations

from collections.abc import Sequence

from ..exceptions import PluginError
from .base import BasePenalty
from .elastic import ElasticPenalty
from .group_lasso import GroupLassoPenalty
from .l1 import L1Penalty
from .max_norm import MaxNormPenalty

__all__ = ["check_steps", "in_order"]

#: Kinds of steps. Two of a kind, one after the other, are the step of the sum: thresholds add up, and the
#: smaller of two balls is in the other. Subclasses may write another step.
KINDS = {
    L1Penalty: "threshold",
    ElasticPenalty: "threshold",
    GroupLassoPenalty: "rows",
    MaxNormPenalty: "columns",
}
#: Kind that may come before another one: it is of a positively homogeneous function, the others are of
#: functions of a norm (Yu, Y.-L., "On decomposing the proximal map", NIPS 2013).
FIRST = "threshold"


def in_order(penalties: Sequence[BasePenalty]) -> list[BasePenalty]:
    """Return penalties in the order in which their proximal steps act: thresholds first.

    Parameters
    ----------
    penalties : sequence of BasePenalty
        Penalties.

    Returns
    -------
    list of BasePenalty
        The same.
    """
    return sorted(penalties, key=lambda penalty: KINDS.get(type(penalty)) != FIRST)


def check_steps(name: str, penalties: Sequence[BasePenalty], has_length: bool) -> None:
    """Check that the proximal steps of a weight, one after the other, are that of the sum.

    Parameters
    ----------
    name : str
        Its name.
    penalties : sequence of BasePenalty
        Its penalties.
    has_length : bool
        Whether the update of the weight has a length for a step.

    Raises
    ------
    PluginError
        If they are not.

    Examples
    --------
    >>> from ortlearn.penalties import GroupLassoPenalty, L1Penalty
    >>> from ortlearn.penalties.meeting_steps import check_steps
    >>> check_steps("coef", [L1Penalty(), GroupLassoPenalty()], has_length=True)
    """
    steps = [penalty for penalty in penalties if penalty.acts_by_step(has_length)]
    kinds = [KINDS.get(type(penalty)) for penalty in steps]
    others = {kind for kind in kinds if kind != FIRST}
    if len(steps) > 1 and (None in kinds or len(others) > 1):
        names = " and ".join(type(penalty).__name__ for penalty in steps)
        raise PluginError(
            f"PerWeightPenalty: the proximal steps of {names} meet on {name!r}, and one after the other is "
            "not that of both: give the weight one of them."
        )
