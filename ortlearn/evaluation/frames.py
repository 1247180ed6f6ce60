"""Data frames of a file, a folder or a pattern of files, whole or in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from .column_types import ColumnTypes
from .frame_copies import FrameCopies
from .input_files import DataFile, data_files, name_of, read_errors
from .messages import shown
from .table_checks import check_separator, repeated_names

__all__ = ["FrameParts", "read_frame"]

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
    than a part is copied to a temporary file. ``size=None`` makes one part of each file. Columns that are
    not in ``only`` are not kept, unless one in it is missing.
    """

    def __init__(
        self,
        path: str,
        separator: str,
        text: Sequence[str],
        size: int | None = ROWS,
        only: Iterable[str] | None = None,
    ):
        files, separator, texts = data_files(path), check_separator(separator), frozenset(text)
        while True:
            self.types = ColumnTypes(name_of(path), None if only is None else frozenset(only))
            self._copies = FrameCopies(None if size is None else CELLS)
            self._parts: list[Callable[[], Iterator[Any]]] = []
            self.n_rows = 0
            for file in files:
                with read_errors(file):
                    if file.kind == "csv":
                        self._add_csv(file, separator, texts, size)
                    else:
                        self._add_dataset(file, size)
            found = self.types.mixed_csv_columns() - texts
            if not found:
                break
            texts |= found
        self.types.check()
        if self.n_rows == 0:
            raise ValueError(f"{name_of(path)} has no rows, only the columns {shown(self.types.names)}.")

    def _add_csv(self, file: DataFile, separator: str, texts: frozenset[str], size: int | None) -> None:
        """Parse a csv file."""
        for frame in self._csv_frames(file, separator, texts, size):
            self.types.add(frame, is_csv=True)
            self.n_rows += len(frame)
            if not self.types.mixed_csv_columns() - texts:  # otherwise the file is parsed again
                self._parts.append(self._copies.put(frame))

    def _csv_frames(
        self, file: DataFile, separator: str, texts: frozenset[str], size: int | None
    ) -> Iterator[Any]:
        """Yield the rows of a csv file, all at once or in parts."""
        import pandas as pd

        compression = "gzip" if file.compressed else None
        read_csv = partial(pd.read_csv, file.path, sep=separator, compression=compression)
        names = read_csv(header=None, nrows=1, dtype=str).iloc[0].dropna()
        columns = [str(name) for name in read_csv(nrows=0).columns]
        self.types.add_names(file.name, columns)
        read = set(self.types.read)
        options: dict[str, Any] = {"dtype": dict.fromkeys(texts, str), "low_memory": False}
        whole = _named(file.name, [str(name) for name in names])

        def named(frame: Any) -> Any:  # all columns are parsed, since usecols ignores what a row has too much
            frame = whole(frame)
            return frame.loc[:, [name in read for name in frame.columns]] if read < {*columns} else frame

        if size is None:
            yield _without_large_integers(named(read_csv(**options)))
            return
        with read_csv(chunksize=_rows_of_part(size, len(columns)), **options) as parts:
            yield from (_without_large_integers(named(part)) for part in parts)

    def _add_dataset(self, file: DataFile, size: int | None) -> None:
        """Read the types of a parquet or Arrow file."""
        from .arrow_files import batches_of, columns_with_gaps, dataset_at

        is_parquet, named = file.kind == "parquet", _named(file.name)
        dataset = dataset_at(file.path, is_parquet)
        empty = named(dataset.schema.empty_table().to_pandas())
        self.types.add_names(file.name, list(empty.columns))
        columns = [name for name in dataset.schema.names if name in self.types.read]
        self.types.add(empty, columns_with_gaps(dataset, columns))
        n_rows = None if size is None else _rows_of_part(size, len(columns))

        def frames() -> Iterator[Any]:
            with read_errors(file):
                if n_rows is None:
                    yield named(dataset.to_table(columns=columns).to_pandas())
                else:
                    for batch in batches_of(file.path, dataset, is_parquet, n_rows, columns):
                        yield named(batch.to_pandas())

        self._parts.append(frames)
        self.n_rows += dataset.count_rows()

    def __iter__(self) -> Iterator[Any]:
        start = 0
        for part in self._parts:
            for frame in part():
                if len(frame):
                    frame = self.types.unified(frame)
                    frame.index = range(start, start + len(frame))
                    start += len(frame)
                    yield frame


def _rows_of_part(size: int, n_columns: int) -> int:
    """Return the number of rows of a part, which has fewer than ``size`` if there are many columns."""
    return min(size, max(CELLS // max(n_columns, 1), FEWEST_ROWS))


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
