"""Find numbers of fitted attributes in initializers, as converters leave them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .fitted_attributes import FittedArray, common_expression
from .number_index import NumberIndex, evidence, within
from .weight_names import is_named_after

__all__ = ["ENOUGH", "FROZEN", "Match", "TREES", "match_parameters"]

#: What converters make of an attribute, number by number.
TRANSFORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": lambda values: values,
    "log": np.log,
    "reciprocal": lambda values: 1 / values,
    "square": np.square,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "reciprocal sqrt": lambda values: 1 / np.sqrt(values),
}
#: How to write what they make of it, ``{}`` in the place of the attribute.
FORMS = {
    "log": "log({})",
    "reciprocal": "1 / {}",
    "square": "square({})",
    "sqrt": "sqrt({})",
    "exp": "exp({})",
    "reciprocal sqrt": "1 / sqrt({})",
}
#: Evidence that a match needs, see :func:`ortlearn.conversion.weights.number_index.evidence`.
ENOUGH = 4
#: Evidence that a match with some of an attribute's numbers needs, by up to how many it has: among
#: many numbers any number is close to one.
ENOUGH_OF = {100: 8, 1_000: 16, 10_000: 24}
#: Larger attributes than that are compared as they are only.
MANY = 100_000
#: Why an attribute of a step before the last is not trained.
FROZEN = "prepares the features of what is trained"
#: Owners of tables that converters scale, by the number of trees or the learning rate.
TREES = {"Tree", "TreePredictor"}


@dataclass(frozen=True)
class Match:
    """The fitted attribute that an initializer holds.

    Attributes
    ----------
    arrays : tuple of FittedArray
        The attribute; several where the initializer stacks those of several members.
    transform : str
        What the converter did with its numbers: ``identity``, ``negative``, ``log``, ...
    row : int or None
        The row it holds of the attribute, where it holds one.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from ortlearn.conversion import learned_parameters, sklearn_to_onnx
    >>> pca = PCA(1).fit([[0.12, 0.31], [1.37, 0.93], [2.51, 1.13]])
    >>> match = learned_parameters(sklearn_to_onnx(pca, 2), pca)["transform_matrix"]
    >>> match.attribute, match.transform, match.learned
    ('components_', 'identity', True)
    """

    arrays: tuple[FittedArray, ...]
    transform: str = "identity"
    row: int | None = None

    @property
    def attribute(self) -> str:
        """Expression that gives the attribute; ``[*]`` stands for every member."""
        row = "" if self.row is None else f"[{self.row}]"
        return common_expression([array.attribute for array in self.arrays]) + row

    @property
    def form(self) -> str:
        """What the initializer holds of the attribute, ``{}`` in its place: ``"log({})"``."""
        minus = "-" if self.transform.startswith("negative") else ""
        return minus + FORMS.get(self.transform.removeprefix("negative").strip(), "{}")

    @property
    def step(self) -> str | None:
        """Step of the pipeline it belongs to."""
        return self.arrays[0].step

    @property
    def learned(self) -> bool:
        """Whether it is trained unless told otherwise."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why it is not trained unless somebody names it; empty where it is."""
        if not all(array.trained for array in self.arrays):
            return FROZEN
        return next((array.held for array in self.arrays if array.held), "")


def match_parameters(
    arrays: Mapping[str, np.ndarray],
    fitted: Sequence[FittedArray],
    frozen: Collection[str] = (),
    likely: Collection[str] = (),
) -> dict[str, Match]:
    """Find the fitted attribute of each initializer.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Initializers.
    fitted : sequence of FittedArray
        Attributes.
    frozen : collection of str, default=()
        Initializers known to belong to steps before the last.
    likely : collection of str, default=()
        Initializers that the graph uses as weights: these may match by numbers that prove nothing,
        such as intercepts that are all zero.

    Returns
    -------
    dict of str to Match
        Those found.
    """
    matching = _Matching(fitted)
    found: dict[str, Match] = {}
    ways = (matching.same_order, matching.same_numbers, matching.with_one_more, matching.part_of)
    for find in (*ways, matching.scaled):
        for name, array in arrays.items():
            if name not in found and array.size:
                match = find(array, name in frozen)
                if match is not None:
                    found[name] = match
    for name, array in arrays.items():
        if name not in found and array.size:
            match = matching.same_name(name, array, name in frozen)
            if match is not None:
                found[name] = match
    for name in arrays:
        if (name in likely or name in frozen) and name not in found and arrays[name].size:
            match = matching.same_order(arrays[name], name in frozen, proven=False)
            if match is not None:
                found[name] = match
    left = {name: array for name, array in arrays.items() if name not in found}
    found.update(matching.only_one(left, frozen))
    return {name: found[name] for name in arrays if name in found}


class _Matching:
    """The ways to find an attribute, the surest first."""

    def __init__(self, fitted: Sequence[FittedArray]):
        self.fitted = fitted
        self._by_size: dict[int, list[int]] = defaultdict(list)
        for i, array in enumerate(fitted):
            self._by_size[array.values.size].append(i)
        self._used: set[int] = set()
        self._indexes: dict[str, NumberIndex] = {}

    def same_order(self, array: np.ndarray, frozen: bool, proven: bool = True) -> Match | None:
        """Find an attribute of the same numbers, reshaped or transposed."""
        if proven and evidence(array) < ENOUGH and len(np.unique(array)) < 3:
            return None
        for i in self._in_turn(self._by_size.get(array.size, ()), frozen):
            values = self.fitted[i].values
            for transform, sign in (("identity", 1), ("negative", -1)):
                if _equal(array, sign * values) or (values.ndim > 1 and _equal(array, sign * values.T)):
                    if not proven and i in self._used:
                        continue
                    self._used.add(i)
                    return Match((self.fitted[i],), transform)
        return None

    def same_name(self, name: str, array: np.ndarray, frozen: bool) -> Match | None:
        """Find an attribute of the same numbers that the initializer is named after, whatever the numbers.

        A mean of 133.56 proves nothing by itself, nor does one of 0: what is trained must not depend on it.
        """
        candidates = self._preferred(self._by_size.get(array.size, ()), frozen)
        for i in sorted(candidates, key=lambda i: -len(self.fitted[i].key[1])):
            if is_named_after(name, self.fitted[i].key[1]) and _equal(array, self.fitted[i].values):
                self._used.add(i)
                return Match((self.fitted[i],))
        return None

    def only_one(self, left: Mapping[str, np.ndarray], frozen: Collection[str]) -> dict[str, Match]:
        """Find attributes that nothing matched, and that one initializer alone of their size equals."""
        found: dict[str, Match] = {}
        for i, array in enumerate(self.fitted):
            if i in self._used or array.held or array.values.size < 2:
                continue
            same = [n for n, a in left.items() if a.size == array.values.size and _equal(a, array.values)]
            if len(same) == 1 and same[0] not in found and (same[0] in frozen) != array.trained:
                found[same[0]] = Match((array,))
        return found

    def same_numbers(self, array: np.ndarray, frozen: bool) -> Match | None:
        """Find an attribute of the same size whose numbers are the same under a transform."""
        if evidence(array) < ENOUGH:
            return None
        given = np.sort(array, axis=None).astype(np.float64)
        candidates = self._preferred(self._by_size.get(array.size, ()), frozen)
        for transform in TRANSFORMS:
            for i in candidates:
                values = _transformed(self.fitted[i].values, transform)
                for name, sign in ((transform, 1), (f"negative {transform}", -1)):
                    if values is not None and within(np.sort(sign * values, axis=None), given):
                        self._used.add(i)
                        return Match((self.fitted[i],), name.replace("negative identity", "negative"))
        return None

    def with_one_more(self, array: np.ndarray, frozen: bool) -> Match | None:
        """Find an attribute that is all but the last number: tables may end with one for the unknown."""
        flat = array.ravel()
        if flat.size < 3 or evidence(flat[:-1]) < ENOUGH_OF[100]:
            return None
        return self.same_order(flat[:-1], frozen)

    def part_of(self, array: np.ndarray, frozen: bool) -> Match | None:
        """Find an attribute that has all the numbers, or one whose members together have them."""
        if evidence(array) < ENOUGH_OF[100]:
            return None
        for transform in TRANSFORMS:
            match = self._part(array, self._index(transform), frozen, transform)
            if match is not None:
                return match
        return None

    def scaled(self, array: np.ndarray, frozen: bool) -> Match | None:
        """Find the trees that have all the numbers, but for a factor."""
        if len(np.unique(array)) < 3:
            return None
        trees = [i for i, a in enumerate(self.fitted) if a.owner in TREES]
        groups: dict[Any, list[int]] = defaultdict(list)
        for i in trees:
            groups[self.fitted[i].group].append(i)
        for members in groups.values():
            largest = max(np.abs(self.fitted[i].values).max() for i in members)
            scale = largest / np.abs(array).max() if np.abs(array).max() else 0.0
            index = NumberIndex({i: self.fitted[i].values for i in members})
            match = self._part(array * scale, index, frozen, "scaled") if scale else None
            if match is not None:
                return match
        return None

    def _part(self, array: np.ndarray, index: NumberIndex, frozen: bool, transform: str) -> Match | None:
        proof = evidence(array)
        holders = self._preferred(index.holders(array), frozen)
        holders = [i for i in holders if transform == "scaled" or proof >= self._enough(i)]
        if holders:
            holder = self.fitted[holders[0]]
            row = _row_of(array, holder.values) if transform == "identity" else None
            return Match((holder,), transform, row)
        groups: dict[Any, list[int]] = defaultdict(list)
        for i in index.members:
            groups[self.fitted[i].group].append(i)
        for members in groups.values():
            if len(members) > 1 and index.hold_together(members, array):
                return Match(tuple(self.fitted[i] for i in members), transform)
        return None

    def _enough(self, i: int) -> int:
        size = self.fitted[i].values.size
        return next((enough for limit, enough in ENOUGH_OF.items() if size <= limit), 40)

    def _index(self, transform: str) -> NumberIndex:
        if transform not in self._indexes:
            kept = {
                i: _transformed(a.values, transform)
                for i, a in enumerate(self.fitted)
                if transform == "identity" or (a.values.size <= MANY and a.owner not in TREES)
            }
            self._indexes[transform] = NumberIndex({i: v for i, v in kept.items() if v is not None})
        return self._indexes[transform]

    def _in_turn(self, candidates: Iterable[int], frozen: bool) -> list[int]:
        """Return candidates, frozen members that nothing matched yet in their place among the others.

        Members of equal numbers follow each other in the graph as in the estimator.
        """
        first = self._preferred(candidates, frozen)
        members = {i for i in first if self.fitted[i].frozen_member and i not in self._used}
        equals = {i for i in first if self.fitted[i].trained and i not in self._used}
        turn = sorted(members | equals) if members and not frozen else []
        return [*turn, *(i for i in first if i not in turn)]

    def _preferred(self, candidates: Iterable[int], frozen: bool) -> list[int]:
        """Return candidates of the right side of the pipeline, those that nothing matched first."""
        fitting = [i for i in candidates if not (frozen and self.fitted[i].trained)]
        return sorted(fitting, key=lambda i: (self.fitted[i].trained == frozen, i in self._used))


def _row_of(array: np.ndarray, values: np.ndarray) -> int | None:
    """Return the number of the row that an array is, None where it is none."""
    if values.ndim < 2 or values[0].size != array.size:
        return None
    return next((i for i, row in enumerate(values) if _equal(array, row)), None)


def _equal(array: np.ndarray, values: np.ndarray) -> bool:
    return within(values.ravel(), array.ravel())


def _transformed(values: np.ndarray, transform: str) -> np.ndarray | None:
    """Return what a converter may have made of an attribute, None where that is not defined."""
    with np.errstate(all="ignore"):
        result = TRANSFORMS[transform](np.asarray(values, dtype=np.float64))
    return result if np.isfinite(result).all() else None
