"""Row groups of parquet files whose features are floats in plain encoding: values are read as they are.

pyarrow reads any file: it decodes a definition level of every value, and copies the values several times,
which takes longer than all else for such columns. What is not plain, and what cannot be read, is left to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import FileIO
from typing import Any

import numpy as np

from .page_headers import HEADER, NotPlain, Page, levels_without_nulls, literals, read_page
from .rows import Rows
from .selection import Selection
from .tables import PADDING, Block, pyarrow

__all__ = ["NotPlain", "PlainReader"]

#: Bytes of a block of rows, which stays in the cache of a core until it is written elsewhere; its rows.
BLOCK, ROWS_OF_BLOCK = 3 * 2**19, (2048, 2**16)
#: Values of a page; smaller pages cost more here than in pyarrow.
FEWEST = 2048
#: Bytes of the other columns of a row group, such as labels: pyarrow reads them all at once.
OTHERS = 2**22
#: Types of numbers by physical type; the physical types by the type of Arrow.
FLOATS = {"FLOAT": np.float32, "DOUBLE": np.float64}
PHYSICAL = {"float": "FLOAT", "double": "DOUBLE"}
ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED"}
CODECS = {"UNCOMPRESSED": None, "GZIP": "gzip", "SNAPPY": "snappy", "ZSTD": "zstd"}


class PlainReader:
    """Reads row groups of local files, one after the other.

    Parameters
    ----------
    selection : Selection
        Columns to read.
    schema : pyarrow.Schema
        Schema of the dataset.
    """

    def __init__(self, selection: Selection, schema: Any):
        self._selection, self._schema = selection, schema
        self._types = {name: schema.field(name).type for name in selection.features}

    def reads(self, group: Any) -> bool:
        """Return whether features of a row group are plain, by its metadata."""
        try:
            with _as_not_plain():
                return bool(self._plain_chunks(group))
        except NotPlain:
            return False

    def rows(self, group: Any, where: str) -> Iterator[Rows]:
        """Yield the rows of a row group, some thousand at a time.

        Parameters
        ----------
        group : pyarrow.dataset.ParquetFileFragment
            Row group.
        where : str
            Its name in messages.

        Yields
        ------
        Rows
            Rows; features are a Block where all of them are plain floats of one type.

        Raises
        ------
        NotPlain
            If features are others than plain floats, or cannot be read.
        """
        selection, n_rows = self._selection, group.row_groups[0].num_rows
        with _as_not_plain():
            chunks = self._plain_chunks(group)
            names = [name for name in selection.columns() if name not in chunks]
            others = _one_batch(group.to_table(self._schema, names, use_threads=False), n_rows)
            file = FileIO(group.path)
        with file:
            columns = {name: _Column(file, *chunk, n_rows) for name, chunk in chunks.items()}
            is_block = len(columns) == len(selection.features) and len(set(self._types.values())) == 1
            labels = selection.rows(others, where) if is_block and names else Rows(None, where=where)
            size = _rows_of_block(sum(column.n_bytes for column in columns.values()))
            for start in range(0, n_rows, size):
                stop = min(start + size, n_rows)
                if is_block:
                    X = Block(selection.features, _read_block(list(columns.values()), stop - start))
                    yield replace(labels.part(start, stop), X=X)
                else:
                    yield selection.rows(self._batch(columns, others, start, stop), where)

    def _batch(self, columns: dict[str, _Column], others: Any, start: int, stop: int) -> Any:
        """Return the next rows of plain columns with those of others as a batch of columns."""
        pa, arrays = pyarrow(), {}
        for name, column in columns.items():
            values = np.empty(stop - start, column.dtype)
            with _as_not_plain():
                column.read(values)
            arrays[name] = pa.array(values)
        part = others.slice(start, stop - start)
        arrays |= dict(zip(part.schema.names, part.columns, strict=True))
        names = self._selection.columns()
        return pa.record_batch([arrays[name] for name in names], names=names)

    def _plain_chunks(self, group: Any) -> dict[str, tuple[Any, bool]]:
        """Return metadata of the features that are plain floats without nulls, and whether they have levels.

        Other columns must be small.
        """
        chunks, left = group.metadata.row_group(group.row_groups[0].id), 0
        found: dict[str, tuple[Any, bool]] = {}
        wanted = {name.partition(".")[0] for name in self._selection.columns()}
        for place in range(chunks.num_columns):
            column = group.metadata.schema.column(place)
            path = column.path
            if path in self._types or path.partition(".")[0] in wanted:
                chunk = chunks.column(place)
                if self._is_plain(path, column, chunk):
                    found[path] = chunk, column.max_definition_level == 1
                else:
                    left += chunk.total_uncompressed_size
        if not found or left > OTHERS:
            raise NotPlain
        return {name: found[name] for name in self._selection.features if name in found}

    def _is_plain(self, path: str, column: Any, chunk: Any) -> bool:
        """Return whether a column is a feature, of plain floats without nulls."""
        kind = self._types.get(path)
        if kind is None or column.physical_type != PHYSICAL.get(str(kind)):
            return False
        level = column.max_definition_level
        has_no_nulls = level == 0 or (chunk.is_stats_set and chunk.statistics.null_count == 0)
        is_plain = set(chunk.encodings) <= ENCODINGS and not chunk.has_dictionary_page
        is_flat = level <= 1 and column.max_repetition_level == 0
        return has_no_nulls and is_plain and is_flat and chunk.compression in CODECS


@contextmanager
def _as_not_plain() -> Iterator[None]:
    """Raise NotPlain for what is unexpected: pyarrow can read it, or says what is wrong."""
    try:
        yield
    except (OSError, ValueError, LookupError) as error:  # errors of Arrow are one of these
        raise NotPlain from error


def _one_batch(table: Any, n_rows: int) -> Any:
    """Return a table as a batch of columns; one of no columns may have no rows."""
    if table.num_columns and table.num_rows != n_rows:
        raise NotPlain
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pyarrow().record_batch([], names=[])


def _rows_of_block(n_bytes: int) -> int:
    """Return how many rows of some bytes are read at a time."""
    least, most = ROWS_OF_BLOCK
    return min(max(BLOCK // n_bytes, least), most)


def _read_block(columns: list[_Column], n_rows: int) -> np.ndarray:
    """Return the next values of columns as rows of an array."""
    shape, dtype = (len(columns), n_rows + PADDING), columns[0].dtype
    memory = pyarrow().allocate_buffer(math.prod(shape) * dtype.itemsize)
    values = np.frombuffer(memory, dtype).reshape(shape)[:, :n_rows]
    with _as_not_plain():
        for column, row in zip(columns, values, strict=True):
            column.read(row)
    return values


class _Column:
    """Values of a column chunk, one after the other: bytes of the file, or of pages that are decompressed."""

    def __init__(self, file: FileIO, chunk: Any, has_levels: bool, n_values: int):
        codec = CODECS[chunk.compression]
        self._codec: Any = None if codec is None else pyarrow().Codec(codec)
        self._file, self._has_levels, self._n_left = file, has_levels, n_values
        self.dtype = np.dtype(FLOATS[chunk.physical_type])
        self.n_bytes = self.dtype.itemsize
        self._at = chunk.data_page_offset
        self._end = self._at + chunk.total_compressed_size
        self._parts: list[tuple[int, int]] = []  # that are left of a page, the next one last
        self._page: Any = None  # if it was decompressed
        self._start = self._stop = 0

    def read(self, values: np.ndarray) -> None:
        """Write the next values into an array."""
        out, file = memoryview(values).cast("B"), self._file
        while out:
            if self._start == self._stop:
                if not self._parts:
                    self._next_page()
                self._start, self._stop = self._parts.pop()
            count = min(len(out), self._stop - self._start)
            stop = self._start + count
            if self._page is not None:
                out[:count] = self._page[self._start : stop]
            else:
                file.seek(self._start)
                if file.readinto(out[:count]) < count:
                    raise NotPlain
            self._start, out = stop, out[count:]

    def _next_page(self) -> None:
        self._file.seek(self._at)
        data = self._file.read(HEADER)
        page = read_page(data, self._at)
        data = data[page.start - self._at :]
        count = page.n_values
        levels = levels_without_nulls(count) if self._has_levels else b""
        fits = min(FEWEST, self._n_left) <= count <= self._n_left and page.start < page.stop <= self._end
        is_whole = self._codec is not None or page.stop - page.start == page.size
        if not fits or not is_whole or page.size != len(levels) + count * self.n_bytes:
            raise NotPlain
        self._page, self._parts = None, self._stored(page, data)
        start, stop = self._parts[0] if self._parts else (0, page.size)
        if self._parts:
            data = data[start - page.start :]
        else:
            data = self._page = self._decompressed(page)
            self._parts = [(start, stop)]
        if data[: len(levels)] != levels:
            raise NotPlain
        self._parts[0] = start + len(levels), stop
        self._parts.reverse()
        self._n_left, self._at = self._n_left - count, page.stop

    def _stored(self, page: Page, data: bytes) -> list[tuple[int, int]]:
        """Return where the file has the bytes of a page as they are; nothing of one to be decompressed."""
        if self._codec is None:
            return [(page.start, page.stop)]
        return literals(self._file, page, data) if self._codec.name == "snappy" else []

    def _decompressed(self, page: Page) -> memoryview:
        self._file.seek(page.start)
        compressed = self._file.read(page.stop - page.start)
        return memoryview(self._codec.decompress(compressed, page.size)).cast("B")
