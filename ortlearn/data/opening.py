"""Open sources of samples: paths, datasets, readers, arrays, iterables and functions."""

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
    """Return whether data has to be read: a path, dataset, reader, iterator, function or Arrow stream."""
    if isinstance(data, str | os.PathLike | Iterator) or _is_dataset(data):
        return True
    if hasattr(data, "shape"):
        return False
    return callable(data) or hasattr(data, "__arrow_c_stream__")


def open_source(
    data: Any, y: Any = None, sample_weight: Any = None, features: Any = None, schema: Any = None
) -> Source:
    """Return the source for a path, dataset, reader, frame, array, iterable of ``(X, y)``, or function.

    ``y``, ``sample_weight`` and ``features`` are names of columns; for an array, the first two are arrays.
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
            f"A {type(data).__name__} can be read only once, but training reads the samples several times: "
            "pass a function that returns it."
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
        f"{type(data).__name__} is not a source of samples: pass a folder of parquet files, a pyarrow "
        "dataset, an object with __arrow_c_stream__, an array, an iterable of (X, y), or a function that "
        "returns one."
    )


def parquet_files(path: str | os.PathLike) -> list[str]:
    """Return the parquet files at a path, sorted."""
    return sorted(_dataset_at(path).files)


def parquet_columns(path: str) -> tuple[Any, int]:
    """Return the columns of a parquet file, and its number of row groups."""
    dataset = _dataset_at(path)
    return dataset.schema, len(row_groups(list(dataset.get_fragments())) or ())


def columns_of_files(
    files: Sequence[tuple[str, Any]], y: Any, sample_weight: Any, features: Any
) -> tuple[list[str], Any]:
    """Return the features of files, and a schema with types for the values of all files."""
    first = files[0][1]
    is_all, features = features is None, [features] if isinstance(features, str) else features
    selection = Selection.of(first, features, y, sample_weight)
    return selection.features, common_schema(files, first, selection.columns(), is_all)


def _dataset_at(path: str | os.PathLike, schema: Any = None) -> Any:
    begin = f"No parquet files can be read at {os.fspath(path)!r}"
    try:
        dataset = dataset_of(path, schema)
    except FileNotFoundError as error:
        raise SourceError(f"{begin}: there is no such file or folder. Check the path.") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"{begin}: {str(error).rstrip('.')}. Check the path and the files.") from error
    if not dataset.files:
        raise SourceError(f"{begin}: the folder is empty, or the names of all files begin with '.' or '_'.")
    return dataset


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
