"""Data frames of a file, a folder or a pattern of files, whole or in parts."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .messages import check_installed, one_line, shown
from .table_checks import check_separator, repeated_names

__all__ = ["frame_parts", "read_frame"]

EXTRA = "cli"
CSV, PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")
#: Rows of a part of a file.
PART = 65_536


def read_frame(path: str, separator: str, text: Sequence[str]) -> Any:
    """Return the rows of all files, at least one; the columns ``text`` are read as text."""
    frames = list(_frames(path, separator, text, None))
    return _with_rows(path, frames[0] if len(frames) == 1 else _joined(frames))


def frame_parts(path: str, separator: str, text: Sequence[str], size: int = PART) -> Iterator[Any]:
    """Yield the rows of all files in parts, which are never in memory together."""
    columns = None
    for frame in _frames(path, separator, text, size):
        columns = list(frame.columns) if columns is None else columns
        if len(frame):
            yield frame[columns]


def _frames(path: str, separator: str, text: Sequence[str], size: int | None) -> Iterator[Any]:
    """Yield the frames of all files with the columns of the first one."""
    separator, first = check_separator(separator), None
    for name in _files(path):
        with _read_errors(name):
            for frame in _frames_of_file(name, separator, text, size):
                first = frame.columns if first is None else first
                if set(frame.columns) != set(first):
                    raise ValueError(
                        f"{name} has the columns {shown(frame.columns)}, and the first file of {path} has "
                        f"{shown(first)}: all files need the same columns."
                    )
                yield frame


def _files(path: str) -> list[str]:
    """Return the files that a path means: itself, all data files in a folder, or those of a pattern."""
    found = [path]
    if path and Path(path).is_dir():
        inside = (each for each in Path(path).rglob("*") if not each.name.startswith((".", "_")))
        found = sorted(str(each) for each in inside if each.name.lower().endswith((*CSV, *PARQUET)))
    elif glob.has_magic(path) and not Path(path).exists():
        found = sorted(glob.glob(path, recursive=True))
    if not found:
        kind = "folder" if Path(path).is_dir() else "pattern"
        raise FileNotFoundError(2, f"No {', '.join(CSV)} or {PARQUET[0]} file in this {kind}", path)
    for name in found:
        if not name.lower().endswith((*CSV, *PARQUET)):
            raise ValueError(
                f"{name or repr(name)}: data must be a {', '.join(CSV)} or {PARQUET[0]} file, a "
                "folder of them, or a pattern such as 'rows-*.csv'."
            )
    check_installed("pandas", EXTRA, "data files")
    if any(name.lower().endswith(PARQUET) for name in found):
        check_installed("pyarrow", EXTRA, "parquet files")
    if not Path(found[0]).exists():
        raise FileNotFoundError(2, "No such file", path)
    return found


def _frames_of_file(path: str, separator: str, text: Sequence[str], size: int | None) -> Iterator[Any]:
    """Yield the rows of a file, all at once or ``size`` at a time."""
    import pandas as pd

    if path.lower().endswith(PARQUET):
        yield from map(_named(path), _parquet_frames(path, size))
        return
    names = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str).iloc[0].dropna()
    options = {"sep": separator, "dtype": dict.fromkeys(text, str), "low_memory": False}
    named = _named(path, [str(name) for name in names])
    if size is None:
        yield named(pd.read_csv(path, **options))
        return
    with pd.read_csv(path, chunksize=size, **options) as parts:
        yield from map(named, parts)


def _parquet_frames(path: str, size: int | None) -> Iterator[Any]:
    """Yield the rows of a parquet file."""
    import pandas as pd

    if size is None:
        yield pd.read_parquet(path)
        return
    from ..data.arrow import dataset_of

    for batch in dataset_of(path).to_batches(batch_size=size):
        yield batch.to_pandas()


def _named(path: str, names: list[str] | None = None) -> Any:
    """Return the function that gives a frame names that are texts and an index from 0."""

    def named(frame: Any) -> Any:
        columns = [str(column) for column in frame.columns]
        repeated = repeated_names(columns if names is None else names)
        if repeated:
            raise ValueError(f"{path} has several columns with the names {shown(repeated)}: rename them.")
        frame.columns = columns
        return frame.reset_index(drop=True)

    return named


@contextmanager
def _read_errors(path: str) -> Iterator[None]:
    """Name the file in errors of pandas and pyarrow."""
    from pandas.errors import EmptyDataError

    try:
        yield
    except EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except (OSError, ValueError, EOFError) as error:
        named = isinstance(error, OSError) and error.filename is not None
        if named or str(error).startswith(path):
            raise
        kind = "parquet" if path.lower().endswith(PARQUET) else "csv"
        advice = " Save the file as UTF-8." if isinstance(error, UnicodeError) else ""
        raise ValueError(f"{path} cannot be read as {kind}: {one_line(error)}{advice}") from error


def _joined(frames: list[Any]) -> Any:
    """Return the rows of all frames."""
    import pandas as pd

    return pd.concat([frame[list(frames[0].columns)] for frame in frames], ignore_index=True)


def _with_rows(path: str, frame: Any) -> Any:
    """Return a frame, which must have rows."""
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows, only the columns {shown(frame.columns)}.")
    return frame
