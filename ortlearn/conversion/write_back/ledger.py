"""New numbers of attributes, read from trained weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..weights.fitted_attributes import FittedArray
from .checks import is_close
from .correspondence import Correspondence
from .finding import joined

__all__ = ["Entry", "Ledger"]


@dataclass(frozen=True)
class Entry:
    """Where the numbers of a weight come from, in one place of the graph.

    Attributes
    ----------
    name : str
        Weight.
    holders : list of int
        Positions of the arrays that it is made of.
    found : Correspondence
        Which of their numbers, one array after the other, make which of its elements.
    """

    name: str
    holders: list[int]
    found: Correspondence


@dataclass
class Ledger:
    """New numbers of the arrays of a fitted estimator, by their positions.

    Attributes
    ----------
    fitted : sequence of FittedArray
        All arrays.
    numbers : dict of int to ndarray
        New numbers of some of them, float64, in their shapes.
    taken : dict of int to ndarray of bool
        Which of these come from a weight; the others are the old ones.
    entries : list of Entry
        Weights that were read, in each place that holds them.
    """

    fitted: Sequence[FittedArray]
    numbers: dict[int, np.ndarray] = field(default_factory=dict)
    taken: dict[int, np.ndarray] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)

    def open(self, position: int) -> np.ndarray:
        """Return the new numbers of an array, to be changed in place."""
        values = self.fitted[position].values
        self.taken.setdefault(position, np.zeros(values.shape, dtype=bool))
        return self.numbers.setdefault(position, np.array(values, dtype=np.float64, order="C"))

    def take(
        self, name: str, values: np.ndarray, before: np.ndarray, own: list[int], found: Correspondence
    ) -> str:
        """Take the numbers of attributes from a trained weight.

        Parameters
        ----------
        name : str
            Weight.
        values, before : ndarray
            Its values after and before the training.
        own : list of int
            Positions of the arrays that it is made of.
        found : Correspondence
            Which of their numbers make it.

        Returns
        -------
        str
            Why that cannot be, empty if it can.
        """
        fixed = found.source < 0
        if not is_close(values.ravel()[fixed], before.ravel()[fixed]):
            return "some of its numbers are none of the attribute, and were trained too"
        self.entries.append(Entry(name, own, found))
        numbers = found.back(values.ravel(), joined([self.fitted[position].values for position in own]))
        known = found.source >= 0
        if not np.isfinite(numbers[known]).all():
            return f"its numbers are not those of a {found.way}"
        begin = 0
        for position in own:
            size = self.fitted[position].values.size
            mine = known & (found.source >= begin) & (found.source < begin + size)
            if mine.any():
                self.open(position).ravel()[found.source[mine] - begin] = numbers[mine]
                self.taken[position].ravel()[found.source[mine] - begin] = True
            begin += size
        return ""

    def members(self, entry: Entry) -> list[int]:
        """Return the positions of the arrays that some elements of a weight come from."""
        ends = np.cumsum([self.fitted[position].values.size for position in entry.holders])
        used = np.unique(np.searchsorted(ends, entry.found.source[entry.found.source >= 0], side="right"))
        return [entry.holders[number] for number in used]

    def expected(self, entry: Entry, before: np.ndarray) -> np.ndarray:
        """Return what a converter should make of the new numbers.

        Parameters
        ----------
        entry : Entry
            Weight that was read.
        before : ndarray
            Its values before the training, for elements that come from no number.
        """
        numbers = joined([self.numbers.get(p, self.fitted[p].values) for p in entry.holders])
        return entry.found.forward(numbers, before)
