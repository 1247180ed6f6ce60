"""Data frames of a file, a folder or a pattern of files, whole or in parts."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .column_types import ColumnTypes
from .frame_copies import FrameCopies
from .messages import check_installed, one_line, shown
from .table_checks import check_separator, repeated_names

__all__ = ["FrameParts", "read_frame"]

EXTRA = "cli"
CSV, PARQUET, ARROW = (".csv", ".csv.gz"), (".parquet", ".pq"), (".arrow", ".feather")
#: Most rows of a part, most cells of one with many columns (4 MB of numbers), and fewest rows then.
ROWS, CELLS, FEWEST_ROWS = 65_536, 2**19, 1024


def read_frame(path: str, separator: str, text: Sequence[str]) -> Any:
    """Return the rows of all files, at least one; the columns ``text`` are read as text."""
    import pandas as pd

    frames = list(FrameParts(path, separator, text, None))
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


class FrameParts:
    """Rows of all files of a path in parts of ``size``, with the columns of the first file.

    The types of columns are those of all rows. csv files are therefore parsed first, and once; what is more
    than a part is copied to a temporary file. ``size=None`` makes one part of each file.
    """

    def __init__(self, path: str, separator: str, text: Sequence[str], size: int | None = ROWS):
        files, separator, texts = _files(path), check_separator(separator), frozenset(text)
        while True:
            self._types, self._copies = ColumnTypes(path), FrameCopies(size)
            self._parts: list[Callable[[], Iterator[Any]]] = []
            self.n_rows = 0
            for name in files:
                with _read_errors(name):
                    if name.lower().endswith(CSV):
                        self._add_csv(name, separator, texts, size)
                    else:
                        self._add_dataset(name, size)
            found = self._types.mixed_csv_columns() - texts
            if not found:
                break
            texts |= found
        self._types.check()
        if self.n_rows == 0:
            raise ValueError(f"{path} has no rows, only the columns {shown(self._types.names)}.")

    def _add_csv(self, name: str, separator: str, texts: frozenset[str], size: int | None) -> None:
        """Parse a csv file."""
        for frame in _csv_frames(name, separator, texts, size):
            self._types.add(name, frame, is_csv=True)
            self.n_rows += len(frame)
            if not self._types.mixed_csv_columns() - texts:  # otherwise the file is parsed again
                self._parts.append(self._copies.put(frame))

    def _add_dataset(self, name: str, size: int | None) -> None:
        """Read the types of a parquet or Arrow file."""
        from .arrow_files import batches_of, columns_with_gaps, dataset_at

        is_parquet, named = name.lower().endswith(PARQUET), _named(name)
        dataset = dataset_at(name, is_parquet)
        self._types.add(name, named(dataset.schema.empty_table().to_pandas()), columns_with_gaps(dataset))
        n_rows = None if size is None else _rows_of_part(size, len(dataset.schema))

        def frames() -> Iterator[Any]:
            with _read_errors(name):
                if n_rows is None:
                    yield named(dataset.to_table().to_pandas())
                else:
                    for batch in batches_of(name, dataset, is_parquet, n_rows):
                        yield named(batch.to_pandas())

        self._parts.append(frames)
        self.n_rows += dataset.count_rows()

    def __iter__(self) -> Iterator[Any]:
        start = 0
        for part in self._parts:
            for frame in part():
                if len(frame):
                    frame = self._types.unified(frame)
                    frame.index = range(start, start + len(frame))
                    start += len(frame)
                    yield frame


def _files(path: str) -> list[str]:
    """Return the files that a path means: itself, all data files in a folder, or those of a pattern."""
    found, known = [path], (*CSV, *PARQUET, *ARROW)
    if path and Path(path).is_dir():
        inside = (each for each in Path(path).rglob("*") if not each.name.startswith((".", "_")))
        found = sorted(str(each) for each in inside if each.name.lower().endswith(known))
    elif glob.has_magic(path) and not Path(path).exists():
        found = sorted(glob.glob(path, recursive=True))
    names = f"{', '.join(CSV)}, {PARQUET[0]} or {ARROW[0]}"
    if not found:
        kind = "folder" if Path(path).is_dir() else "pattern"
        raise FileNotFoundError(2, f"No {names} file in this {kind}", path)
    for name in found:
        if not name.lower().endswith(known):
            raise ValueError(
                f"{name or repr(name)}: data must be a {names} file, a folder of them, or a pattern such as "
                "'rows-*.csv'."
            )
    check_installed("pandas", EXTRA, "data files")
    if any(not name.lower().endswith(CSV) for name in found):
        check_installed("pyarrow", EXTRA, "parquet and Arrow files")
    if not Path(found[0]).exists():
        raise FileNotFoundError(2, "No such file", path)
    return found


def _rows_of_part(size: int, n_columns: int) -> int:
    """Return the number of rows of a part, which has fewer than ``size`` if there are many columns."""
    return min(size, max(CELLS // max(n_columns, 1), FEWEST_ROWS))


def _csv_frames(path: str, separator: str, texts: frozenset[str], size: int | None) -> Iterator[Any]:
    """Yield the rows of a csv file, all at once or in parts."""
    import pandas as pd

    names = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str).iloc[0].dropna()
    options = {"sep": separator, "dtype": dict.fromkeys(texts, str), "low_memory": False}
    named = _named(path, [str(name) for name in names])
    if size is None:
        yield _without_large_integers(named(pd.read_csv(path, **options)))
        return
    with pd.read_csv(path, chunksize=_rows_of_part(size, len(names)), **options) as parts:
        yield from (_without_large_integers(named(part)) for part in parts)


def _without_large_integers(frame: Any) -> Any:
    """Return a frame whose integers of more than 64 bits, which are objects, are floats."""
    from pandas.api.types import infer_dtype

    for name in frame.columns[frame.dtypes.eq(object)]:
        if infer_dtype(frame[name], skipna=True) == "integer":
            try:
                frame[name] = frame[name].astype(float)
            except OverflowError:
                frame[name] = frame[name].astype(str)
    return frame


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
        kind = {CSV: "csv", PARQUET: "parquet", ARROW: "an Arrow file"}
        found = next(text for ends, text in kind.items() if path.lower().endswith(ends))
        advice = " Save the file as UTF-8." if isinstance(error, UnicodeError) else ""
        raise ValueError(f"{path} cannot be read as {found}: {one_line(error)}{advice}") from error
