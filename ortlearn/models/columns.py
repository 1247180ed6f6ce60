"""Columns of several kinds, each a tensor of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Columns"]


@dataclass(frozen=True)
class Columns:
    """Columns of several kinds: numbers, whole numbers or text.

    Attributes
    ----------
    tensors : tuple of str or None
        A tensor of shape (n, 1) for each column; None for one that nothing reads.

    Examples
    --------
    >>> from ortlearn.models.columns import Columns
    >>> Columns(("age", "city", "text")).take([2, 0])
    Columns(tensors=('text', 'age'))
    """

    tensors: tuple[str | None, ...]

    def take(self, positions: Iterable[int]) -> Columns:
        """Return some of the columns.

        Parameters
        ----------
        positions : iterable of int
            Their positions, in the order they are wanted.

        Returns
        -------
        Columns
            Columns.
        """
        return Columns(tuple(self.tensors[position] for position in positions))
