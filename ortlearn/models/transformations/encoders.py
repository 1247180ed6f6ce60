"""Encoders of categorical features: ordinal, one-hot and target encoding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ...exceptions import ConversionError
from ..base import ModelDefinition
from ..scores import Scores, transformation
from ..writer import ModelWriter


def as_text(value: Any) -> str:
    """Return a category as its text in the graph; missing values other than None are "nan"."""
    missing = isinstance(value, float | np.floating) and value != value
    return "nan" if missing or type(value).__name__ in ("NAType", "NaTType") else str(value)


def category_numbers(op: ModelWriter, column: str, categories: Sequence[Any]) -> str:
    """Append the number of the category of each sample: its position plus one, 0 for an unknown value.

    The column has text, integers or floats. The column and the result (int64) have the shape (n, 1).
    """
    values = np.asarray(categories)
    known = op.type(column)
    elem_type = TensorProto.FLOAT if known is None else known.elem_type
    numbers = list(range(1, len(values) + 1))
    if elem_type == TensorProto.STRING:
        texts = [as_text(value) for value in values.tolist()]
        if len(set(texts)) < len(texts):
            raise ConversionError(
                "An encoder has missing values and also a category 'nan' or 'None', which is the text of a "
                "missing value in ONNX: rename the category, or replace missing values by another text."
            )
        return op.look_up(column, texts, numbers)
    if elem_type == TensorProto.INT64:
        return op.look_up(column, [int(value) for value in values.tolist()], numbers)
    return _number_of_value(op, column, values)


def _number_of_value(op: ModelWriter, column: str, values: np.ndarray) -> str:
    """Append the category numbers of a column of floats."""
    known = np.array([np.nan if value is None else value for value in values.tolist()], dtype=np.float64)
    rounded = known.astype(op.float_dtype)
    if len(np.unique(rounded)) < len(np.unique(known)):
        raise ConversionError(
            f"An encoder has categories that are equal in {op.float_dtype}: use integers or text, or set "
            "dtype='float64'."
        )
    equal, missing = op.Equal(column, rounded), np.isnan(known)
    if missing.any():
        equal = op.Or(equal, op.And(op.IsNaN(column), missing))
    positions = np.arange(1, len(known) + 1, dtype=np.int64)
    return op.ReduceMax(op.Mul(op.Cast(equal, to=TensorProto.INT64), positions), [1], keepdims=1)


class _Encoder(ModelDefinition):
    """Base class of encoders that encode each column separately."""

    takes_columns = True
    continuous = False
    untrained = "it learns categories, and has no parameters"


class OneHotEncoderDefinition(_Encoder):
    """OneHotEncoder: 1 in the column of the category, 0 elsewhere."""

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
