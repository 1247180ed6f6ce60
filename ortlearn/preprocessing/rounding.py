"""Numbers that lose digits which matter when they become float32."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .columns import columns_of, count_rows
from .schema import FLOATS, InputSchema

#: Share of its standard deviation from which on the rounding of a column matters.
LOST = 1e-3
#: Samples looked at.
SAMPLES = 1000


def rounding(values: Any) -> float:
    """Return how far float32 moves numbers, relative to their standard deviation.

    It is 0 for equal numbers, infinite where float32 is too small; missing numbers are left out.
    """
    values = np.asarray(values)
    if values.dtype in (np.float32, np.float16) or values.dtype.kind == "b":
        return 0.0
    wide = np.asarray(values, dtype=np.float64)
    wide = wide[np.isfinite(wide)]
    # Differences from the first one: the variance of numbers near 1e300 would overflow.
    with np.errstate(over="ignore", under="ignore"):
        apart = np.abs(wide - wide.astype(np.float32)).max(initial=0.0)
        spread = np.max(np.abs(wide - wide[:1]), initial=0.0)
    if not apart or not spread:
        return 0.0
    return float(apart / (spread * np.std((wide - wide[0]) / spread))) if np.isfinite(apart) else np.inf


def rounded_columns(X: Any, schema: InputSchema) -> list[Hashable]:
    """Return the names or positions of the columns of X that lose digits which matter in float32."""
    inputs = [item.column for item in schema.inputs if item.known.elem_type in FLOATS]
    # a sparse matrix has zeros among its numbers: no offset
    if issparse(X) or not inputs or count_rows(X) == 0:
        return []
    lost = []
    for key, values in columns_of(X):
        with suppress(TypeError, ValueError):  # texts, reported elsewhere
            read = inputs[0] is None or key in inputs
            if read and rounding(values[:: max(1, len(values) // SAMPLES)]) > LOST:
                lost.append(key)
    return lost


def title_of_columns(keys: Sequence[Hashable]) -> str:
    """Return the first five names or positions of columns for a message."""
    shown = ", ".join(map(repr, keys[:5])) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
    return f"column{'s' if len(keys) > 1 else ''} {shown}"
