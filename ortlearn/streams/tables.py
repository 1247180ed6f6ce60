"""Columns of Arrow as rows: features as a matrix or a frame, labels and weights as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..exceptions import SourceError
from .rows import Rows

__all__ = ["Selection", "Table", "pyarrow"]

#: Rows of which columns are put side by side at once: they and the result are in the cache.
ROWS = 4096
#: Elements between two columns there: at a power of two bytes they would share the same sets of the cache.
PADDING = 48


def pyarrow() -> Any:
    """Return the module pyarrow, imported when it is first needed."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Reading parquet files and Arrow data needs pyarrow: pip install 'ortlearn[streams]'."
        ) from error
    return pyarrow


class Table:
    """Features of some rows, as columns of Arrow.

    Parameters
    ----------
    data : pyarrow.RecordBatch or pyarrow.Table
        Columns.
    """

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
        """Return some rows after one another.

        Parameters
        ----------
        parts : sequence of Table
            Rows of the same columns.

        Returns
        -------
        Table
            All of them.
        """
        pa = pyarrow()
        return Table(pa.concat_tables([_as_table(part._data) for part in parts]))

    @property
    def holds_numbers(self) -> bool:
        """Whether all columns are numbers, or one of lists of numbers is."""
        return _are_numbers(tuple(self._kinds))

    def matrix(self, dtype: np.dtype) -> np.ndarray:
        """Return numbers as a matrix, NaN for nulls.

        Parameters
        ----------
        dtype : numpy.dtype
            Type.

        Returns
        -------
        ndarray of shape (n, n_features)
            C-contiguous.
        """
        found = np.empty((len(self), self.width), dtype=dtype)
        self.write(found)
        return found

    @property
    def width(self) -> int:
        """Columns of the matrix."""
        return self._kinds[0].list_size if _are_lists(self._kinds) else len(self._kinds)

    def write(self, out: np.ndarray) -> None:
        """Write the matrix into an array.

        Parameters
        ----------
        out : ndarray of shape (n, width)
            Where to.
        """
        pa, stop = pyarrow(), 0
        for batch in [self._data] if isinstance(self._data, pa.RecordBatch) else self._data.to_batches():
            start, stop = stop, stop + batch.num_rows
            if _are_lists(self._kinds):
                out[start:stop] = _list_matrix(batch.column(0))
            else:
                _write_rows([_numbers(column) for column in batch.columns], out[start:stop])

    def frame(self, dtype: np.dtype) -> Any:
        """Return the columns as a frame of pandas where it is installed, numbers as a matrix otherwise.

        Parameters
        ----------
        dtype : numpy.dtype
            Type of a matrix.

        Returns
        -------
        DataFrame or ndarray
            Features.
        """
        if _are_lists(self._kinds):
            return self.matrix(dtype)
        try:
            return self._data.to_pandas()
        except ImportError as error:
            if self.holds_numbers:
                return self.matrix(dtype)
            raise ImportError(
                "Columns of text and of other types than numbers need pandas: pip install pandas."
            ) from error


@dataclass(frozen=True)
class Selection:
    """Which columns are features, labels and weights; found once, in the schema.

    Attributes
    ----------
    features : list of str
        Features.
    y : str, list of str or None
        Columns of labels.
    sample_weight : str or None
        Column of weights.
    width : int
        Numbers of a row of features.
    """

    features: list[str]
    y: Any
    sample_weight: str | None
    width: int

    @classmethod
    def of(cls, schema: Any, features: Any, y: Any, sample_weight: Any) -> Selection:
        """Return the columns that are meant, all others as features by default; check that they exist."""
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None and not isinstance(value, str) and not _are_names(value):
                raise ValueError(
                    f"{name} must be the name of a column of the source, not {type(value).__name__}: its "
                    f"columns are {schema.names}."
                )
        labels = [y] if isinstance(y, str) else list(y or ())
        others = [*labels, *([] if sample_weight is None else [sample_weight])]
        chosen = [name for name in schema.names if name not in others] if features is None else list(features)
        missing = [name for name in (*chosen, *others) if name not in schema.names]
        if missing:
            raise ValueError(f"The source has no columns {missing}: it has {schema.names}.")
        if not chosen:
            raise ValueError(f"No column is left for features: the source has {schema.names}.")
        width = sum(getattr(schema.field(name).type, "list_size", 1) for name in chosen)
        return cls(chosen, y if isinstance(y, str) or y is None else labels, sample_weight, width)

    def columns(self, features: bool = True) -> list[str]:
        """Return the names of all columns that are read; at least one."""
        labels = [self.y] if isinstance(self.y, str) else list(self.y or ())
        others = [*labels, *([] if self.sample_weight is None else [self.sample_weight])]
        return [*(self.features if features or not others else ()), *others]

    @property
    def names(self) -> list[str] | None:
        """Names of the features."""
        return self.features

    def rows(self, batch: Any, where: str) -> Rows:
        """Return the rows of a batch of columns; features are left out where it has none of them."""
        has_features = self.features[0] in batch.schema.names
        y = None
        if isinstance(self.y, str):
            y = _column(batch, self.y, where)
        elif self.y is not None:
            y = np.stack([_column(batch, name, where) for name in self.y], axis=1)
        weight = None if self.sample_weight is None else _column(batch, self.sample_weight, where)
        return Rows(Table(batch.select(self.features)) if has_features else None, y, weight, where)


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _as_table(data: Any) -> Any:
    pa = pyarrow()
    return pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data


def _is_number(kind: Any) -> bool:
    types = pyarrow().types
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)


@lru_cache(maxsize=8)
def _are_numbers(kinds: tuple[Any, ...]) -> bool:
    """Return whether columns are numbers; most tables of a source have the same kinds."""
    return all(map(_is_number, kinds)) or _are_lists(kinds)


def _are_lists(kinds: Sequence[Any]) -> bool:
    types = pyarrow().types
    return len(kinds) == 1 and types.is_fixed_size_list(kinds[0]) and _is_number(kinds[0].value_type)


def _write_rows(columns: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Write columns side by side: some rows at a time, first one column after the other, then across."""
    across = np.empty((len(columns), min(ROWS, len(out)) + PADDING), dtype=out.dtype)
    for start in range(0, len(out), ROWS):
        rows = out[start : start + ROWS]
        for column, target in zip(columns, across, strict=True):
            target[: len(rows)] = column[start : start + ROWS]
        rows[:] = across[:, : len(rows)].T


def _list_matrix(column: Any) -> np.ndarray:
    values = _numbers(column.flatten())
    if len(values) != len(column) * column.type.list_size:
        raise SourceError("A list of features is missing: every row must have one.")
    return values.reshape(len(column), -1)


def _numbers(column: Any) -> np.ndarray:
    """Return a column as numbers, NaN for nulls."""
    if pyarrow().types.is_boolean(column.type):
        column = column.cast("int8")  # nulls among bools would become objects
    return _values(column)


def _values(column: Any) -> np.ndarray:
    pa = pyarrow()
    if isinstance(column, pa.ChunkedArray):
        return column.to_numpy()
    return column.to_numpy(zero_copy_only=False)


def _column(batch: Any, name: str, where: str) -> np.ndarray:
    """Return a column of labels or weights, which has no nulls."""
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        raise SourceError(
            f"Column {name!r} has {column.null_count} nulls in {where}: fill them or drop their rows."
        )
    if pyarrow().types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _values(column)
