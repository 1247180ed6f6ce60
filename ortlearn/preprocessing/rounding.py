"""Numbers that lose digits which matter when they become float32."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy.sparse import issparse

from .columns import as_columns, column_keys, column_values, count_rows, is_frame
from .schema import InputSchema

__all__ = ["LOST", "rounded_columns", "rounding", "title_of_columns"]

#: Share of its standard deviation from which on the rounding of a column matters.
LOST = 1e-3
#: Samples looked at.
SAMPLES = 1000


def rounding(values: Any) -> float:
    """Return how far float32 moves numbers, relative to their standard deviation.

    It is 0 for equal numbers, infinite where float32 is too small; missing numbers are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.preprocessing.rounding import rounding
    >>> times = 1.6e9 + np.arange(100.0)
    >>> round(rounding(times), 1), rounding(times - 1.6e9)
    (2.2, 0.0)
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
    """Return the columns of X that lose digits which matter in the inputs of a graph.

    They are names, or positions where there are none. A part of the samples is looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.preprocessing.rounding import rounded_columns
    >>> from ortlearn.preprocessing.schema import matrix_schema
    >>> X = np.column_stack([np.arange(9.0), 1e9 + np.arange(9.0)])
    >>> rounded_columns(X, matrix_schema(2)), rounded_columns(X, matrix_schema(2, np.float64))
    ([1], [])
    """
    if issparse(X):  # zeros among the numbers: no offset
        return []
    return [key for key, values in _read_as_float(X, schema) if _loses(values)]


def title_of_columns(keys: Sequence[Hashable]) -> str:
    """Return the first five names or positions of columns for a message.

    Examples
    --------
    >>> from ortlearn.preprocessing.rounding import title_of_columns
    >>> title_of_columns(["time"]), title_of_columns(list(range(7)))
    ("column 'time'", 'columns 0, 1, 2, 3, 4 and 2 more')
    """
    shown = ", ".join(map(repr, keys[:5])) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
    return f"column{'s' if len(keys) > 1 else ''} {shown}"


def _loses(values: np.ndarray) -> bool:
    step = max(1, len(values) // SAMPLES)
    try:
        return rounding(values[::step]) > LOST
    except (TypeError, ValueError):  # texts, reported elsewhere
        return False


def _read_as_float(X: Any, schema: InputSchema) -> Iterator[tuple[Hashable, np.ndarray]]:
    """Yield the columns that float32 inputs take."""
    inputs = [item for item in schema.inputs if item.known.elem_type == TensorProto.FLOAT]
    named = isinstance(X, dict) or is_frame(X)
    if not inputs or count_rows(X) == 0:
        return
    X = X if named else as_columns(X)
    if not named and X.dtype.kind not in "fiuO":
        return
    keys = column_keys(X)
    if inputs[0].column is not None:
        keys = [item.column for item in inputs if item.column in keys]
    yield from ((key, column_values(X, key)) for key in keys)
