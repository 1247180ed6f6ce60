"""Categories of a column as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from ..exceptions import ConversionError
from .columns import SampleWriter


def as_text(value: Any) -> str:
    """Return a category as its text in the graph; missing values other than None are "nan"."""
    missing = isinstance(value, float | np.floating) and value != value
    return "nan" if missing or type(value).__name__ in ("NAType", "NaTType") else str(value)


def category_numbers(op: SampleWriter, column: str, categories: Sequence[Any]) -> str:
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


def _number_of_value(op: SampleWriter, column: str, values: np.ndarray) -> str:
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
