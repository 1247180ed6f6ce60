"""Arrow columns of features, converted to a matrix or a frame."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..exceptions import SourceError

__all__ = ["PADDING", "Block", "Table", "is_number", "partition_keys", "pyarrow", "value_type", "values_of"]

#: Rows that are transposed at a time, so that source and result fit into the cache.
ROWS = 4096
#: Padding between columns, in elements: distances of a power of two bytes would map to the same cache sets.
PADDING = 48


def pyarrow() -> Any:
    """Import and return pyarrow."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Reading parquet files and Arrow data needs pyarrow: pip install 'ortlearn[streams]'."
        ) from error
    return pyarrow


def partition_keys(fragment: Any) -> list[str]:
    """Return the columns of a fragment that are in its path."""
    from pyarrow.dataset import get_partition_keys

    return list(get_partition_keys(fragment.partition_expression))


class Table:
    """Features as Arrow columns."""

    def __init__(self, data: Any):
        self._data = data
        self._kinds = data.schema.types
        self.shape = (data.num_rows, data.num_columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Table:
        start, stop, _ = rows.indices(len(self))
        return Table(self._data.slice(start, stop - start))

    @staticmethod
    def join_parts(parts: Sequence[Table]) -> Table:
        """Concatenate tables."""
        pa = pyarrow()
        return Table(pa.concat_tables([_as_table(part._data) for part in parts]))

    @property
    def holds_numbers(self) -> bool:
        """Whether all columns are numeric, or the only one has lists of numbers."""
        return _are_numbers(tuple(self._kinds))

    def matrix(self, dtype: np.dtype) -> np.ndarray:
        """Return numeric columns as a matrix, with NaN for nulls."""
        found = np.empty((len(self), self.width), dtype=dtype)
        self.write(found)
        return found

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return self._kinds[0].list_size if _are_lists(self._kinds) else len(self._kinds)

    def write(self, out: np.ndarray) -> None:
        """Write the matrix of numeric columns into an array."""
        pa, stop = pyarrow(), 0
        for batch in [self._data] if isinstance(self._data, pa.RecordBatch) else self._data.to_batches():
            start, stop = stop, stop + batch.num_rows
            if _are_lists(self._kinds):
                out[start:stop] = _list_matrix(batch.column(0))
            else:
                _write_rows([_numbers(column) for column in batch.columns], out[start:stop])

    def frame(self, dtype: np.dtype) -> Any:
        """Return the columns as a DataFrame; without pandas, numeric columns as a matrix."""
        if _are_lists(self._kinds):
            return self.matrix(dtype)
        try:
            return self._data.to_pandas()
        except ImportError as error:
            if self.holds_numbers:
                return self.matrix(dtype)
            raise ImportError("Columns that are not numeric need pandas: pip install pandas.") from error


class Block(Table):
    """Features of one floating-point type without nulls; each column is contiguous."""

    holds_numbers = True  # type: ignore[assignment]

    def __init__(self, names: list[str], columns: np.ndarray):
        self._names, self._columns = names, columns
        self.shape = columns.shape[1], columns.shape[0]

    def __getitem__(self, rows: slice) -> Block:
        return Block(self._names, self._columns[:, rows])

    @cached_property
    def _data(self) -> Any:  # type: ignore[override]
        pa = pyarrow()
        return pa.record_batch([pa.array(column) for column in self._columns], names=self._names)

    @property
    def _kinds(self) -> Any:
        return self._data.schema.types

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return self.shape[1]

    def write(self, out: np.ndarray) -> None:
        """Write the matrix into an array."""
        out[:] = self._columns.T


def _as_table(data: Any) -> Any:
    pa = pyarrow()
    return pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data


def is_number(kind: Any) -> bool:
    """Return whether values of a type are numbers or booleans."""
    types = pyarrow().types
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)


@lru_cache(maxsize=8)
def _are_numbers(kinds: tuple[Any, ...]) -> bool:
    """Return whether columns are numbers; cached, since tables of a source have the same types."""
    return all(map(is_number, kinds)) or _are_lists(kinds)


def _are_lists(kinds: Sequence[Any]) -> bool:
    types = pyarrow().types
    return len(kinds) == 1 and types.is_fixed_size_list(kinds[0]) and is_number(kinds[0].value_type)


def _write_rows(columns: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Write columns into a matrix: copy some rows of each column, then transpose them in the cache."""
    across = np.empty((len(columns), min(ROWS, len(out)) + PADDING), dtype=out.dtype)
    for start in range(0, len(out), ROWS):
        rows = out[start : start + ROWS]
        for column, target in zip(columns, across, strict=True):
            target[: len(rows)] = column[start : start + ROWS]
        rows[:] = across[:, : len(rows)].T


def _list_matrix(column: Any) -> np.ndarray:
    values = _numbers(column.flatten())
    if len(values) != len(column) * column.type.list_size:
        raise SourceError("The column of lists has nulls. Fill them, or drop these rows.")
    return values.reshape(len(column), -1)


def _numbers(column: Any) -> np.ndarray:
    """Return a column as numbers, NaN for nulls."""
    if pyarrow().types.is_boolean(column.type):
        column = column.cast("int8")  # booleans with nulls would be converted to objects
    return values_of(column)


def value_type(kind: Any) -> Any:
    """Return the type of the values of a dictionary, and other types unchanged."""
    return kind.value_type if pyarrow().types.is_dictionary(kind) else kind


def values_of(column: Any) -> np.ndarray:
    """Return a column as an array; the values of a dictionary, which must have no nulls."""
    pa = pyarrow()
    if pa.types.is_dictionary(column.type):  # pyarrow does not decode those of polars
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return np.concatenate([values_of(chunk.dictionary)[chunk.indices.to_numpy()] for chunk in chunks])
    if isinstance(column, pa.ChunkedArray):
        return column.to_numpy()
    return column.to_numpy(zero_copy_only=False)
