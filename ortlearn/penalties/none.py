"""No penalty."""

from __future__ import annotations

from ..graphs import GraphBuilder
from .base import BasePenalty

__all__ = ["NoPenalty"]


class NoPenalty(BasePenalty):
    """No penalty.

    Parameters
    ----------
    intercept : bool, default=False
        Ignored.
    weights : str, sequence of str or None, default=None
        Ignored.

    Examples
    --------
    >>> from ortlearn.penalties import NoPenalty
    >>> NoPenalty()
    NoPenalty()
    """

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Return None, which stands for no penalty."""
        return None
