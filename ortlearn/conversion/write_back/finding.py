"""Which numbers of which attributes a weight holds: read off their order, or found by a second conversion."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..weights.fitted_attributes import FittedArray
from ..weights.weight_selection import Weight
from .correspondence import Correspondence, correspondence, in_order
from .reconversion import Reconverted

__all__ = ["ByOrder", "ByProbe", "alike", "holders", "joined"]

#: Positions of arrays, and which of their numbers make a weight; or why that is not known.
Found = list[tuple[list[int], Correspondence]] | str


class ByOrder:
    """Attributes whose numbers a weight holds in their order, or transposed.

    It takes no conversion, and may be wrong: numbers that are equal in two places, ones that could be
    their own squares.

    Parameters
    ----------
    base : Reconverted
        The estimator as it is.
    fitted : sequence of FittedArray
        Its arrays.
    """

    def __init__(self, base: Reconverted, fitted: Sequence[FittedArray]):
        self.base = base
        self.fitted = fitted

    def find(self, name: str, own: list[int]) -> Found:
        """Return where the numbers of a weight come from.

        Parameters
        ----------
        name : str
            Weight.
        own : list of int
            Positions of the arrays that it may be made of.

        Returns
        -------
        list of tuple, or str
            Positions of arrays and numbers, once for each place of the graph that holds the weight; or
            why they are not known.
        """
        found = in_order([self.fitted[position].values for position in own], self.base.arrays[name])
        return "its numbers are in another order" if found is None else [(own, found)]


class ByProbe:
    """Attributes that are told by converting a copy in which all their numbers are moved.

    Parameters
    ----------
    base, probe : Reconverted
        The estimator as it is, and the copy.
    fitted, after : sequence of FittedArray
        The arrays of these.
    """

    def __init__(
        self,
        base: Reconverted,
        probe: Reconverted,
        fitted: Sequence[FittedArray],
        after: Sequence[FittedArray],
    ):
        self.base = base
        self.probe = probe
        self.fitted = fitted
        self.after = after

    def find(self, name: str, own: list[int]) -> Found:
        """Return where the numbers of a weight come from, as :meth:`ByOrder.find` does."""
        places = self.base.counterparts(name, self.probe)
        if not places:
            return "the converter writes another graph where the attribute has other numbers"
        found = [self._find_place(own, self.base.arrays[name], second) for second in places]
        known = [place for place in found if place is not None]
        return known if len(known) == len(found) else "no number of the attribute says what it is"

    def _find_place(
        self, own: list[int], first: np.ndarray, second: np.ndarray
    ) -> tuple[list[int], Correspondence] | None:
        best = None
        for positions in (own, alike(own, self.fitted)):
            arrays = [self.fitted[position].values for position in positions]
            moved = [self.after[position].values for position in positions]
            found = in_order(arrays, first, moved, second)
            if found is None:
                found = correspondence(joined(arrays), joined(moved), first, second)
            if found is not None:
                best = (positions, found)
                if (found.source >= 0).all():
                    break
        return best


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


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the numbers of some arrays, one after the other."""
    return np.concatenate([array.ravel().astype(np.float64) for array in arrays])
