"""Find columns that lose significant digits in float32."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .columns import as_columns, column_kind, columns_of, count_samples, is_frame
from .schema import FLOATS, InputSchema

LOST = 1e-3  # maximum rounding error relative to the standard deviation
SAMPLES = 1000  # number of samples to check


def rounding(values: Any) -> float:
    """Return the largest rounding error in float32 by the standard deviation, infinite on overflow."""
    values = np.asarray(values)
    if values.dtype in (np.float32, np.float16) or values.dtype.kind == "b":
        return 0.0
    wide = np.asarray(values, dtype=np.float64)
    wide = wide[np.isfinite(wide)]
    # of differences from the first value, since the variance of values near 1e300 overflows
    with np.errstate(over="ignore", under="ignore"):
        error = np.abs(wide - wide.astype(np.float32)).max(initial=0.0)
        spread = np.max(np.abs(wide - wide[:1]), initial=0.0)
    if not error or not spread:
        return 0.0
    return float(error / (spread * np.std((wide - wide[0]) / spread))) if np.isfinite(error) else np.inf


def has_wide_numbers(X: Any) -> bool:
    """Return whether X has numbers of a type, such as float64, that is wider than float32."""
    if issparse(X) or not is_frame(X := as_columns(X)):
        return is_wide(X)
    return any(is_wide(values) for _, values in columns_of(X))


def is_wide(values: Any) -> bool:
    """Return whether an array has numbers of a type with values that float32 rounds."""
    if values.dtype.kind == "O":
        return column_kind(values) in ("float", "integer")
    return values.dtype.kind in "fiu" and not np.can_cast(values.dtype, np.float32)


def rounded_columns(X: Any, schema: InputSchema) -> list[Hashable]:
    """Return the names or positions of the columns of X that lose significant digits in float32."""
    inputs = [item.column for item in schema.inputs if item.known.elem_type in FLOATS]
    # A sparse matrix contains zeros, so that its columns have no large offset.
    if issparse(X) or not inputs or count_samples(X) == 0:
        return []
    lost = []
    for key, values in columns_of(X):
        with suppress(TypeError, ValueError):  # text: other functions raise the error
            read = inputs[0] is None or key in inputs
            if read and rounding(values[:: max(1, len(values) // SAMPLES)]) > LOST:
                lost.append(key)
    return lost


def title_of_columns(keys: Sequence[Hashable]) -> str:
    """Return up to five names or positions of columns for a message."""
    shown = ", ".join(map(repr, keys[:5])) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
    return f"column{'s' if len(keys) > 1 else ''} {shown}"
