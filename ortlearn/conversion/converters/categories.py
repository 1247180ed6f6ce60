"""Splits on categories of HistGradientBoosting estimators, as chains of comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

from .tree_attributes import NodeArrays

__all__ = ["Categories"]


class Categories:
    """What the codes of a fitted model's categories stand for.

    Parameters
    ----------
    model : HistGradientBoostingClassifier or HistGradientBoostingRegressor
        Fitted model.

    Raises
    ------
    NotImplementedError
        If categories are no numbers.
    """

    def __init__(self, model: Any):
        self.columns = np.arange(model.n_features_in_)
        self.values: dict[int, np.ndarray] = {}
        if getattr(model, "_preprocessor", None) is None:
            return
        # The model's own preprocessing numbers the categories and puts their columns first.
        own = np.flatnonzero(model.is_categorical_)
        self.columns = np.concatenate([own, np.flatnonzero(~model.is_categorical_)])
        known = model._preprocessor.named_transformers_["encoder"].categories_
        if any(values.dtype.kind not in "biuf" for values in known):
            raise NotImplementedError("categories of HistGradientBoosting that are text")
        self.values = {place: values.astype(np.float64) for place, values in enumerate(known)}
        bits, place_of = model._bin_mapper.make_known_categories_bitsets()
        self._seen = {place: _members(bits[place_of[place]]) for place in self.values}

    def nodes_of(self, predictor: Any) -> NodeArrays:
        """Return the nodes of one tree.

        A category goes to the branch that names it, one that was not seen in training where missing
        values go: the branch that they do not go to is named category by category.
        """
        nodes = predictor.nodes
        leaf = nodes["is_leaf"] == 1
        left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        place = np.where(leaf, 0, nodes["feature_idx"])
        columns = [
            self.columns[place],
            np.where(leaf, "LEAF", "BRANCH_LEQ"),
            np.where(leaf, 0, nodes["num_threshold"]),
            np.where(leaf, 0, left),
            np.where(leaf, 0, right),
            np.where(leaf, 0, nodes["missing_go_to_left"]).astype(np.int64),
        ]
        table = [list(column) for column in columns]
        for number in np.flatnonzero(~leaf & (nodes["is_categorical"] == 1)):
            in_left = _members(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][number]])
            missing_left = bool(nodes["missing_go_to_left"][number])
            codes = sorted(self._seen[place[number]] - in_left if missing_left else in_left)
            named, other = (right, left) if missing_left else (left, right)
            values = self.values[place[number]][codes]
            _write_chain(table, int(number), values, int(named[number]), int(other[number]))
        return NodeArrays(*(np.array(column) for column in table))


def _members(bits: np.ndarray) -> set[int]:
    """Return the numbers whose bits are set in some 32-bit words."""
    return set(np.flatnonzero(np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little")).tolist())


def _write_chain(table: list[list], number: int, values: np.ndarray, named: int, other: int) -> None:
    """Make a split a chain of comparisons with some values, whose further nodes are put at the end."""
    size = len(table[0])
    # Nothing equals NaN: a chain of no value.
    values = values if len(values) else np.array([np.nan])
    places = [number, *range(size, size + len(values) - 1)]
    for place, value, following in zip(places, values, [*places[1:], other], strict=True):
        row = (table[0][number], "BRANCH_EQ", value, named, following, 0)
        for column, entry in zip(table, row, strict=True):
            if place < len(column):
                column[place] = entry
            else:
                column.append(entry)
