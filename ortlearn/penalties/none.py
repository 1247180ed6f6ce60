"""No penalty."""

from __future__ import annotations

from .base import BasePenalty

__all__ = ["NoPenalty"]


class NoPenalty(BasePenalty):
    """No penalty at all.

    Parameters
    ----------
    intercept : bool, default=False
        Without effect.
    weights : str, sequence of str or None, default=None
        No effect.

    Examples
    --------
    >>> from ortlearn.penalties import NoPenalty
    >>> NoPenalty()
    NoPenalty()
    """

    def forward(self, op, weight):
        """Write nothing."""
        return None
