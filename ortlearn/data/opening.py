"""Open sources of rows: paths, datasets, readers, arrays, iterables and functions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scipy.sparse import issparse

from ..exceptions import SourceError
from .arrow import BatchSource, DatasetSource, SpooledSource, TableSource, dataset_of, row_groups
from .schemas import check_unique, common_schema
from .selection import Selection
from .sources import ArraySource, IterableSource, Source, called
from .tables import pyarrow

__all__ = ["is_source", "open_source", "parquet_files"]


def is_source(data: Any) -> bool:
    """Return whether an object is a source of rows rather than rows in memory.

    Parameters
    ----------
    data : object
        Anything.

    Returns
    -------
    bool
        True for paths, datasets, readers, iterators, functions, and Arrow streams without a shape.

    Examples
    --------
    >>> from ortlearn.data.opening import is_source
    >>> is_source("folder"), is_source(iter([])), is_source([[1.0]])
    (True, True, False)
    """
    if isinstance(data, str | os.PathLike | Iterator) or _is_dataset(data):
        return True
    if hasattr(data, "shape"):
        return False
    return callable(data) or hasattr(data, "__arrow_c_stream__")


def open_source(
    data: Any, y: Any = None, sample_weight: Any = None, features: Any = None, schema: Any = None
) -> Source:
    """Open a source of rows.

    Parameters
    ----------
    data : path, dataset, reader, frame, array, iterable or callable
        Rows: a file or folder of parquet files, a pyarrow dataset, an object with ``__arrow_c_stream__``, an
        array, an iterable of ``(X, y)``, or a function that returns one.
    y, sample_weight : str, list of str, array-like or None
        Names of columns; arrays with the same number of rows if ``data`` is an array.
    features : list of str, default=None
        Columns that are features; all others by default.
    schema : pyarrow.Schema, default=None
        Columns and types of the parquet files at a path; by default those of the files.

    Returns
    -------
    Source
        Source.

    Raises
    ------
    SourceError
        If the source cannot be read, a column does not exist or is not supported, the source has no named
        columns, or it can be read only once.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.data.opening import open_source
    >>> source = open_source(np.zeros((3, 2)), np.arange(3))
    >>> [(len(rows), rows.y.tolist()) for rows in source.blocks()]
    [(3, [0, 1, 2])]
    """
    if isinstance(features, str):
        features = [features]
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        check_unique(list(data.columns), "X")
    if isinstance(data, str | os.PathLike):
        return DatasetSource(_dataset_at(data, schema), features, y, sample_weight)
    if _is_dataset(data):
        return DatasetSource(data, features, y, sample_weight)
    if callable(data) and not hasattr(data, "shape"):
        return _of_function(data, features, y, sample_weight)
    if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__"):
        raise SourceError(
            f"A {type(data).__name__} can be read only once, but training reads the rows several times: pass "
            "a function that returns it."
        )
    named = y is None or isinstance(y, str) or (isinstance(y, list | tuple) and y and isinstance(y[0], str))
    if hasattr(data, "__arrow_c_stream__") and named:
        return _of_arrow(data, features, y, sample_weight)
    if issparse(data) or hasattr(data, "shape"):
        if features is not None and hasattr(data, "columns"):
            data, features = _selected(data, features), None
        _refuse_names(features, y, sample_weight)
        return ArraySource(data, y, sample_weight)
    if isinstance(data, Iterable):
        _refuse_names(features, y, sample_weight)
        if y is not None or sample_weight is not None:
            raise SourceError(
                "y and sample_weight are not supported for an iterable of batches. Yield (X, y) or "
                "(X, y, sample_weight)."
            )
        return IterableSource(data)
    raise SourceError(
        f"{type(data).__name__} is not a source of rows: pass a folder of parquet files, a pyarrow dataset, "
        "an object with __arrow_c_stream__, an array, an iterable of (X, y), or a function that returns one."
    )


def parquet_files(path: str | os.PathLike) -> list[str]:
    """Return the parquet files at a path, sorted.

    Parameters
    ----------
    path : str or os.PathLike
        File or folder.

    Returns
    -------
    list of str
        Paths.

    Raises
    ------
    SourceError
        If there are no readable parquet files.
    """
    return sorted(_dataset_at(path).files)


def parquet_columns(path: str) -> tuple[Any, int]:
    """Return the columns of a parquet file, and its number of row groups.

    Parameters
    ----------
    path : str
        File.

    Returns
    -------
    schema : pyarrow.Schema
        Columns with their types.
    n_groups : int
        Number of row groups with rows.

    Raises
    ------
    SourceError
        If the file cannot be read.
    """
    dataset = _dataset_at(path)
    return dataset.schema, len(row_groups(list(dataset.get_fragments())) or ())


def columns_of_files(
    files: Sequence[tuple[str, Any]], y: Any, sample_weight: Any, features: Any
) -> tuple[list[str], Any]:
    """Return the features of files, and a schema with types for the values of all files.

    Parameters
    ----------
    files : sequence of (str, pyarrow.Schema)
        Path and columns of each file.
    y, sample_weight : str, list of str or None
        Columns of labels and weights.
    features : str, list of str or None
        Columns of features; all others by default.

    Returns
    -------
    features : list of str
        Columns of features.
    schema : pyarrow.Schema
        Columns.

    Raises
    ------
    SourceError
        If columns are missing or not supported, or differ between the files.
    """
    first = files[0][1]
    is_all, features = features is None, [features] if isinstance(features, str) else features
    selection = Selection.of(first, features, y, sample_weight)
    return selection.features, common_schema(files, first, selection.columns(), is_all)


def _dataset_at(path: str | os.PathLike, schema: Any = None) -> Any:
    try:
        return dataset_of(path, schema)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"No parquet files can be read at {os.fspath(path)!r}: {error}. Check the path and the files."
        ) from error


def _is_dataset(data: Any) -> bool:
    return hasattr(data, "get_fragments") and hasattr(data, "schema")


def _of_arrow(data: Any, features: Any, y: Any, sample_weight: Any) -> Source:
    pa = pyarrow()
    if isinstance(data, pa.RecordBatchReader):
        return SpooledSource(data, features, y, sample_weight)
    is_query = callable(getattr(data, "fetchall", None))  # a relation of duckdb, which has a shape
    if hasattr(data, "shape") and not is_query:
        return TableSource(pa.table(data), features, y, sample_weight)
    return BatchSource(lambda: pa.RecordBatchReader.from_stream(data), features, y, sample_weight)


def _of_function(data: Any, features: Any, y: Any, sample_weight: Any) -> Source:
    """Return the source of a function: of record batches if columns are selected by name."""
    if y is None and sample_weight is None and features is None:
        return IterableSource(data)
    return BatchSource(lambda: _reader(called(data)), features, y, sample_weight)


def _reader(found: Any) -> Any:
    if hasattr(found, "schema") and hasattr(found, "read_next_batch"):
        return found
    if hasattr(found, "__arrow_c_stream__"):
        return pyarrow().RecordBatchReader.from_stream(found)
    raise SourceError(
        f"The function returns {type(found).__name__}, which has no columns: omit y, features and "
        "sample_weight and yield (X, y), or return an Arrow reader."
    )


def _selected(frame: Any, features: Any) -> Any:
    """Return columns of a frame."""
    names = list(frame.columns)
    if not isinstance(features, list | tuple) or len(set(features)) < len(features):
        raise SourceError(f"features={features!r} must be a list of different columns.")
    missing = [name for name in features if name not in names]
    if missing:
        raise SourceError(f"The source has no columns {missing}. Its columns are {names}.")
    return frame[list(features)]


def _refuse_names(features: Any, y: Any, sample_weight: Any) -> None:
    names = {"y": y, "sample_weight": sample_weight}
    wrong = [name for name, value in names.items() if isinstance(value, str)]
    if features is not None or wrong:
        what = " and ".join([*wrong, *(["features"] if features is not None else [])])
        raise SourceError(f"{what} cannot name columns: the source has no named columns. Pass arrays.")
