"""Splits of gradient boosting on categories, as columns that ordinary splits compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..encoders import category_numbers
from ..members import joined
from ..pipelines import column_positions
from ..writer import ModelWriter
from .nodes import Nodes


def split_on_categories(
    op: ModelWriter, model: Any, predictors: Sequence[Any], x: Any
) -> tuple[Nodes, str, int]:
    """Append a column for each split on categories: 0 for the categories that go left, 1 for the others.

    Returns
    -------
    nodes : Nodes
        Trees that compare the columns.
    matrix : str
        Columns of numbers, then those of the splits.
    n_columns : int
        Number of columns of the matrix.
    """
    # The model numbers the categories itself, and puts their columns before the others.
    positions = {name: own for name, _, own in column_positions(model._preprocessor)}
    categories = model._preprocessor.named_transformers_["encoder"].categories_
    numbers = [position for name, own in positions.items() if name != "encoder" for position in own]
    nodes = Nodes.of_predictors(predictors)
    table = np.concatenate([predictor.nodes for predictor in predictors])
    is_split = (table["is_leaf"] == 0) & (table["is_categorical"] == 1)
    feature, threshold = nodes.feature - len(categories), nodes.threshold.copy()
    tree = np.repeat(np.arange(len(predictors)), nodes.sizes)
    known, place_of = model._bin_mapper.make_known_categories_bitsets()
    columns = [op.matrix(op.columns(x, numbers, model.n_features_in_))] if numbers else []
    count = len(numbers)
    for place, (position, values) in enumerate(zip(positions["encoder"], categories, strict=True)):
        own = np.flatnonzero(is_split & (table["feature_idx"] == place))
        if not len(own):
            continue
        seen = _members(known[place_of[place]], len(values)) & ~_are_missing(values)
        right = np.empty((len(values) + 1, len(own)), dtype=op.float_dtype)
        for column, number in enumerate(own):
            node = table[number]
            left = _members(predictors[tree[number]].raw_left_cat_bitsets[node["bitset_idx"]], len(values))
            missing = not node["missing_go_to_left"]
            right[:, column] = np.append(missing, np.where(seen, ~left, missing))
        found = op.Gather(right, category_numbers(op, op.column(x, position), values), axis=0)
        columns.append(op.Reshape(found, [-1, len(own)]))
        feature[own] = np.arange(count, count + len(own))
        threshold[own] = 0.5
        count += len(own)
    nodes = replace(nodes, feature=feature, threshold=threshold, missing_left=nodes.missing_left & ~is_split)
    return nodes, joined(op, columns), count


def _members(bits: np.ndarray, count: int) -> np.ndarray:
    """Return whether the bits of the first numbers are set in some 32-bit words."""
    found = np.unpackbits(bits.astype("<u4").view(np.uint8), bitorder="little").astype(bool)
    return np.resize(np.append(found, np.zeros(max(0, count - len(found)), dtype=bool)), count)


def _are_missing(values: np.ndarray) -> np.ndarray:
    return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
