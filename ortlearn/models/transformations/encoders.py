"""Encoders of categorical features: ordinal, one-hot and target encoding."""

from typing import Any

import numpy as np

from ..base import ModelDefinition
from ..capabilities import CrossFitted
from ..categories import category_numbers
from ..scores import Scores, transformation
from ..writer import ModelWriter


class _Encoder(ModelDefinition):
    """Base class of encoders that encode each column separately."""

    takes_columns = True
    continuous = False
    untrained = "it learns categories, and has no parameters"


class OneHotEncoderDefinition(_Encoder):
    """OneHotEncoder: 1 in the column of the category, 0 elsewhere."""

    exact = True

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        parts, count = [], 0
        for position, categories in enumerate(model.categories_):
            positions = _output_columns(model, position)
            width = int(positions.max(initial=-1)) + 1
            if not width:
                continue
            number, first = category_numbers(op, op.column(x, position), categories), 1
            if not np.array_equal(positions, np.arange(-1, len(categories))):
                number, first = op.Gather(positions, number, axis=0), 0
            parts.append(op.ones_where(op.Equal(number, np.arange(first, first + width, dtype=np.int64))))
            count += width
        if not parts:
            raise op.fail(model, "it drops all categories: change drop to keep at least one.")
        return transformation(op, op.joined(parts), count)


def _output_columns(model: Any, position: int) -> np.ndarray:
    """Return the output columns of an unknown value and of each category of a column; -1 if dropped."""
    positions, unknown = np.arange(len(model.categories_[position]), dtype=np.int64), -1
    if model._infrequent_enabled and model.infrequent_categories_[position] is not None:
        positions = np.asarray(model._default_to_infrequent_mappings[position], dtype=np.int64)
        if model.handle_unknown in ("infrequent_if_exist", "warn"):
            unknown = int(positions.max())
    dropped = None if model._drop_idx_after_grouping is None else model._drop_idx_after_grouping[position]
    positions = np.append(unknown, positions)
    if dropped is None:
        return positions
    return np.where(positions == dropped, -1, positions - (positions > dropped))


class OrdinalEncoderDefinition(_Encoder):
    """OrdinalEncoder: the number of the category."""

    exact = True

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        columns = []
        for position, categories in enumerate(model.categories_):
            number = category_numbers(op, op.column(x, position), categories)
            columns.append(op.Gather(self._codes(op, model, position), number, axis=0))
        return transformation(op, op.joined(columns), len(columns))

    def _codes(self, op: ModelWriter, model: Any, position: int) -> np.ndarray:
        """Return the code of an unknown value, then of each category of a column."""
        codes = np.arange(len(model.categories_[position]), dtype=op.float_dtype)
        mapping = model._default_to_infrequent_mappings[position] if model._infrequent_enabled else None
        if mapping is not None:
            codes[: len(mapping)] = mapping  # without the missing category, which is the last
        missing = model._missing_indices.get(position)
        if missing is not None:
            codes[missing] = model.encoded_missing_value
        unknown = model.unknown_value if model.handle_unknown == "use_encoded_value" else np.nan
        return np.append(np.asarray(unknown, dtype=op.float_dtype), codes)


class TargetEncoderDefinition(_Encoder):
    """TargetEncoder: the mean target of the category, shrunk towards the global mean."""

    capabilities = (CrossFitted(),)
    untrained = ""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        per_column = len(model.encodings_) // len(model.categories_)
        means = np.atleast_1d(np.asarray(model.target_mean_, dtype=op.float_dtype))
        columns = []
        for position, categories in enumerate(model.categories_):
            number = category_numbers(op, op.column(x, position), categories)
            for target in range(per_column):
                values = op.parameter(model, "encodings_", index=position * per_column + target, role="table")
                table = op.Pad(values, [1, 0], op.constant(means[target]))
                columns.append(op.Gather(table, number, axis=0))
        return transformation(op, op.joined(columns), len(columns))
