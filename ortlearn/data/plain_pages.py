"""Read row groups of parquet files with numbers in plain encoding, without pyarrow's decoder.

pyarrow decodes a definition level for each value and copies the values several times, which dominates the
reading time of such columns. :class:`NotPlain` is raised for everything else, which pyarrow then reads.
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
from .sample_blocks import SampleBlock
from .selection import Selection
from .tables import PADDING, Block, pyarrow

__all__ = ["NotPlain", "PlainReader"]

#: Bytes of a block of rows, which fits into the cache of a core; bounds of its number of rows.
BLOCK, ROWS_OF_BLOCK = 3 * 2**19, (2048, 2**16)
#: Smallest number of values of a page; pyarrow is faster for smaller pages.
MIN_VALUES = 2048
#: Largest size in bytes of the other columns of a row group, such as labels: pyarrow reads them all at once.
MAX_OTHERS = 2**22
#: NumPy types by physical type, and physical types by Arrow type.
NUMBERS = {"FLOAT": np.float32, "DOUBLE": np.float64, "INT32": np.int32, "INT64": np.int64}
PHYSICAL = {"float": "FLOAT", "double": "DOUBLE", "int64": "INT64"}
PHYSICAL |= dict.fromkeys(("int8", "int16", "int32"), "INT32")
ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED"}
CODECS = {"UNCOMPRESSED": None, "GZIP": "gzip", "SNAPPY": "snappy", "ZSTD": "zstd"}


class PlainReader:
    """Read row groups of local files."""

    def __init__(self, selection: Selection, schema: Any, block_bytes: int = BLOCK):
        self._selection, self._schema, self._block_bytes = selection, schema, block_bytes
        self._types = {name: schema.field(name).type for name in selection.columns()}

    def reads(self, group: Any) -> bool:
        """Return whether a row group has plain features, according to its metadata."""
        try:
            with _as_not_plain():
                return bool(self._plain_chunks(group))
        except NotPlain:
            return False

    def rows(self, group: Any, where: str) -> Iterator[SampleBlock]:
        """Yield the rows of a row group in blocks of some thousand."""
        selection, n_rows = self._selection, group.row_groups[0].num_rows
        with _as_not_plain():
            chunks = self._plain_chunks(group)
            names = [name for name in selection.columns() if name not in chunks]
            others = self._one_batch(group, names)
            file = FileIO(group.path)
        with file:
            columns = {
                name: _Column(file, *chunk, self._types[name], n_rows) for name, chunk in chunks.items()
            }
            block = self._of_block(columns)
            own = {name: column for name, column in columns.items() if name not in block}
            size = self._rows_of_block(sum(column.n_bytes for column in columns.values()))
            for start in range(0, n_rows, size):
                stop = min(start + size, n_rows)
                with _as_not_plain():
                    arrays = {name: column.array(stop - start) for name, column in own.items()}
                    values = _read_block(list(block.values()), stop - start) if block else None
                part = others.slice(start, stop - start)
                arrays |= dict(zip(part.schema.names, part.columns, strict=True))
                rows = selection.rows(pyarrow().record_batch(list(arrays.values()), list(arrays)), where)
                yield rows if values is None else replace(rows, X=Block(list(block), values))

    def _rows_of_block(self, n_bytes: int) -> int:
        """Return the number of rows of a block, for rows of ``n_bytes`` bytes."""
        least, most = ROWS_OF_BLOCK
        return min(max(self._block_bytes // n_bytes, least), most)

    def _of_block(self, columns: dict[str, _Column]) -> dict[str, _Column]:
        """Return the features if all of them are plain floats of one type, else an empty dict."""
        features = [columns.get(name) for name in self._selection.features]
        dtypes = {None if column is None else column.dtype for column in features}
        is_block = len(dtypes) == 1 and dtypes <= {np.dtype(np.float32), np.dtype(np.float64)}
        return {name: columns[name] for name in self._selection.features} if is_block else {}

    def _one_batch(self, group: Any, names: list[str]) -> Any:
        """Return columns of a row group, read by pyarrow."""
        if not names:
            return pyarrow().record_batch([], names=[])
        table = group.to_table(self._schema, names, use_threads=False)
        if table.num_rows != group.row_groups[0].num_rows:
            raise NotPlain
        return table.combine_chunks().to_batches()[0]

    def _plain_chunks(self, group: Any) -> dict[str, tuple[Any, bool]]:
        """Return the metadata of plain columns, and whether they have levels.

        Raise NotPlain if no feature is plain, or the other columns are large.
        """
        chunks, left = group.metadata.row_group(group.row_groups[0].id), 0
        found: dict[str, tuple[Any, bool]] = {}
        for place in range(chunks.num_columns):
            column = group.metadata.schema.column(place)
            path = column.path
            if path.partition(".")[0] in self._types:
                chunk = chunks.column(place)
                if self._is_plain(path, column, chunk):
                    found[path] = chunk, column.max_definition_level == 1
                else:
                    left += chunk.total_uncompressed_size
        if found.keys().isdisjoint(self._selection.features) or left > MAX_OTHERS:
            raise NotPlain
        return found

    def _is_plain(self, path: str, column: Any, chunk: Any) -> bool:
        """Return whether a column has plain numbers without nulls."""
        if column.physical_type != PHYSICAL.get(str(self._types.get(path))):
            return False
        level = column.max_definition_level
        has_no_nulls = level == 0 or (chunk.is_stats_set and chunk.statistics.null_count == 0)
        is_plain = set(chunk.encodings) <= ENCODINGS and not chunk.has_dictionary_page
        is_flat = level <= 1 and column.max_repetition_level == 0
        return has_no_nulls and is_plain and is_flat and chunk.compression in CODECS


@contextmanager
def _as_not_plain() -> Iterator[None]:
    """Convert errors to NotPlain: pyarrow can read the data, or explains the error."""
    try:
        yield
    except (OSError, ValueError, LookupError) as error:  # base classes of Arrow's errors
        raise NotPlain from error


def _read_block(columns: list[_Column], n_rows: int) -> np.ndarray:
    """Return the next values of each column as a row of an array."""
    shape, dtype = (len(columns), n_rows + PADDING), columns[0].dtype
    memory = pyarrow().allocate_buffer(math.prod(shape) * dtype.itemsize)
    values = np.frombuffer(memory, dtype).reshape(shape)[:, :n_rows]
    for column, row in zip(columns, values, strict=True):
        column.read(row)
    return values


class _Column:
    """Sequential reader of the values of a column chunk, from the file or from decompressed pages."""

    def __init__(self, file: FileIO, chunk: Any, has_levels: bool, kind: Any, n_values: int):
        codec = CODECS[chunk.compression]
        self._codec: Any = None if codec is None else pyarrow().Codec(codec)
        self._file, self._has_levels, self._n_left = file, has_levels, n_values
        self.dtype, self._kind = np.dtype(NUMBERS[chunk.physical_type]), kind.to_pandas_dtype()
        self.n_bytes = self.dtype.itemsize
        self._at = chunk.data_page_offset
        self._end = self._at + chunk.total_compressed_size
        self._parts: list[tuple[int, int]] = []  # unread parts of the page, in reverse order
        self._page: Any = None  # decompressed page
        self._start = self._stop = 0

    def array(self, count: int) -> Any:
        """Return the next values as an Arrow array."""
        values = np.empty(count, self.dtype)
        self.read(values)
        return pyarrow().array(values.astype(self._kind, copy=False))

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
        """Find the values of the next page; raise NotPlain if it has others than expected."""
        self._file.seek(self._at)
        data = self._file.read(HEADER)
        page = read_page(data, self._at)
        data = data[page.start - self._at :]
        count = page.n_values
        levels = levels_without_nulls(count) if self._has_levels else b""
        fits = min(MIN_VALUES, self._n_left) <= count <= self._n_left and page.start < page.stop <= self._end
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
        """Return the positions of a page stored without compression; empty if it must be decompressed."""
        if self._codec is None:
            return [(page.start, page.stop)]
        return literals(self._file, page, data) if self._codec.name == "snappy" else []

    def _decompressed(self, page: Page) -> memoryview:
        self._file.seek(page.start)
        compressed = self._file.read(page.stop - page.start)
        return memoryview(self._codec.decompress(compressed, page.size)).cast("B")
