"""New numbers of attributes, read from trained weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..weights.fitted_attributes import FittedArray
from ..weights.weight_selection import Weight
from .checks import is_close
from .correspondence import Correspondence, correspondence
from .reconversion import Reconverted

__all__ = ["Entry", "Ledger", "alike", "holders"]


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

    def read(
        self,
        name: str,
        values: np.ndarray,
        own: list[int],
        graphs: tuple[Reconverted, Reconverted],
        after: Sequence[FittedArray],
    ) -> str:
        """Take the numbers of attributes from a trained weight.

        Parameters
        ----------
        name : str
            Weight.
        values : ndarray
            Its trained values.
        own : list of int
            Positions of the arrays that it may be made of.
        graphs : tuple of Reconverted
            The estimator as it was, and with other numbers in these arrays.
        after : sequence of FittedArray
            The arrays with the other numbers.

        Returns
        -------
        str
            Why that cannot be, empty if it can.
        """
        first = graphs[0].arrays[name]
        if not own:
            return "" if is_close(values, first) else "it is not known which attribute it comes from"
        places = graphs[0].counterparts(name, graphs[1])
        if not places:
            return "the converter writes another graph where the attribute has other numbers"
        for second in places:
            problem = self._read_place(name, values, own, first, second, after)
            if problem:
                return problem
        return ""

    def _read_place(
        self,
        name: str,
        values: np.ndarray,
        own: list[int],
        first: np.ndarray,
        second: np.ndarray,
        after: Sequence[FittedArray],
    ) -> str:
        found = None
        for positions in (own, alike(own, self.fitted)):
            found = correspondence(
                _joined([self.fitted[position].values for position in positions]),
                _joined([after[position].values for position in positions]),
                first,
                second,
            )
            if found is not None and (found.source >= 0).all():
                break
        if found is None:
            return "no number of the attribute says what it is"
        fixed = found.source < 0
        if not is_close(values.ravel()[fixed], first.ravel()[fixed]):
            return "some of its numbers are none of the attribute, and were trained too"
        self.entries.append(Entry(name, positions, found))
        return self._take(found, values.ravel(), positions)

    def _take(self, found: Correspondence, values: np.ndarray, own: list[int]) -> str:
        before = _joined([self.fitted[position].values for position in own])
        numbers, known = found.back(values, before), found.source >= 0
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
        numbers = _joined([self.numbers.get(p, self.fitted[p].values) for p in entry.holders])
        return entry.found.forward(numbers, before)


def holders(weight: Weight, fitted: Sequence[FittedArray]) -> list[int]:
    """Return the positions of the arrays that a weight may be made of.

    Parameters
    ----------
    weight : Weight
        Weight.
    fitted : sequence of FittedArray
        Arrays.

    Returns
    -------
    list of int
        Positions; none where it is not known.
    """
    if weight.attribute is None:
        return []
    for expression in (weight.attribute, re.sub(r"\[\d+\]$", "", weight.attribute)):
        pattern = re.compile(re.escape(expression).replace(r"\[\*\]", r"\[\d+\]"))
        found = [
            position
            for position, array in enumerate(fitted)
            if array.step == weight.step and pattern.fullmatch(array.attribute)
        ]
        if found:
            return found
    return []


def alike(positions: Sequence[int], fitted: Sequence[FittedArray]) -> list[int]:
    """Return the positions of the same attributes of all members, for those of some.

    Equal numbers of several members may have been taken for those of one.
    """
    groups = {fitted[position].group for position in positions}
    return [position for position, array in enumerate(fitted) if array.group in groups]


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.ravel().astype(np.float64) for array in arrays])
