"""Row groups of parquet files whose columns are floats in plain encoding: pages become arrays as they are.

pyarrow reads any file: it decodes a definition level of every value, and copies the values, which takes
longer than everything else for such columns. What is not plain, and what cannot be read, is left to it.
Formats: parquet.thrift of parquet-format 2.11, and the compact protocol of Apache Thrift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import FileIO
from typing import Any

from .tables import pyarrow

__all__ = ["NotPlain", "PlainReader"]

#: Bytes that are read of a file at a time: of all columns together, and the least and the most of one.
WINDOWS, WINDOW = 2**24, (2**16, 2**18)
#: Bytes of the header of a page: those of floats have less than a hundred.
HEADER = 512
#: Values of a page; smaller pages cost more here than in pyarrow.
FEWEST = 2048
#: Bytes of the other columns of a row group, such as labels: pyarrow reads them all at once.
OTHERS = 2**22
#: Physical types by the type of Arrow.
FLOATS = {"float": "FLOAT", "double": "DOUBLE"}
ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED"}
CODECS = {"UNCOMPRESSED": None, "GZIP": "gzip", "SNAPPY": "snappy", "ZSTD": "zstd"}
#: Types of fields in Thrift's compact protocol.
BOOLEANS, I32, INTEGERS, BINARY, STRUCT = (1, 2), 5, (4, 5, 6), 8, 12
#: Fields of a page header and of its data page header, by number and type.
TYPE, SIZE, COMPRESSED_SIZE, DATA_PAGE = (1, I32), (2, I32), (3, I32), (5, STRUCT)
N_VALUES, ENCODING, DEFINITION_LEVELS, REPETITION_LEVELS = (1, I32), (2, I32), (3, I32), (4, I32)
#: Values of these fields: a data page of version 1, and encodings.
VERSION_1, PLAIN, RLE, BIT_PACKED = 0, 0, 3, 4


class NotPlain(Exception):
    """The next rows of a row group cannot be read here; those before are right."""


class PlainReader:
    """Reads row groups of local files, one after the other.

    Parameters
    ----------
    columns : sequence of str
        Columns to read.
    schema : pyarrow.Schema
        Schema of the dataset.
    """

    def __init__(self, columns: Sequence[str], schema: Any):
        self._columns = list(columns)
        self._types = {name: schema.field(name).type for name in columns}
        self._schema = schema
        self._windows: dict[str, _Window] = {}

    def reads(self, group: Any) -> bool:
        """Return whether a row group is one of plain columns, by its metadata."""
        try:
            with _as_not_plain():
                return bool(self._plain_chunks(group))
        except NotPlain:
            return False

    def batches(self, group: Any) -> Iterator[Any]:
        """Yield the rows of a row group, those of a page at a time.

        Parameters
        ----------
        group : pyarrow.dataset.ParquetFileFragment
            Row group.

        Yields
        ------
        pyarrow.RecordBatch
            Rows.

        Raises
        ------
        NotPlain
            If columns are others than plain floats, or cannot be read.
        """
        n_rows, start = group.row_groups[0].num_rows, 0
        with _as_not_plain():
            chunks = self._plain_chunks(group)
            names = [name for name in self._columns if name not in chunks]
            others = group.to_table(self._schema, names, use_threads=False) if names else None
            file = FileIO(group.path)
        with file:
            pages = {
                name: _Pages(file, *chunk, self._types[name], self._window(name, len(chunks)))
                for name, chunk in chunks.items()
            }
            while start < n_rows:
                with _as_not_plain():
                    count = min(own.n_left(n_rows - start) for own in pages.values())
                    arrays = {name: own.take(count) for name, own in pages.items()}
                if others is not None:
                    part = others.slice(start, count).combine_chunks()
                    arrays |= {name: _array(part.column(name)) for name in part.column_names}
                yield pyarrow().record_batch([arrays[name] for name in self._columns], names=self._columns)
                start += count

    def _plain_chunks(self, group: Any) -> dict[str, tuple[Any, bool]]:
        """Return metadata of the columns that are plain floats without nulls, and whether they have levels.

        The others must be small.
        """
        chunks, left = group.metadata.row_group(group.row_groups[0].id), 0
        found: dict[str, tuple[Any, bool]] = {}
        for place in range(chunks.num_columns):
            column, chunk = group.metadata.schema.column(place), chunks.column(place)
            if self._is_plain(column, chunk):
                found[column.path] = chunk, column.max_definition_level == 1
            elif column.path.partition(".")[0] in self._types:
                left += chunk.total_uncompressed_size
        if not found or left > OTHERS:
            raise NotPlain
        return found

    def _is_plain(self, column: Any, chunk: Any) -> bool:
        """Return whether a column is one that is wanted, of plain floats without nulls."""
        kind = self._types.get(column.path)
        if kind is None or column.physical_type != FLOATS.get(str(kind)):
            return False
        level = column.max_definition_level
        has_no_nulls = level == 0 or (chunk.is_stats_set and chunk.statistics.null_count == 0)
        is_plain = set(chunk.encodings) <= ENCODINGS and not chunk.has_dictionary_page
        is_flat = level <= 1 and column.max_repetition_level == 0
        return has_no_nulls and is_plain and is_flat and chunk.compression in CODECS

    def _window(self, name: str, n_columns: int) -> _Window:
        """Return the window of a column, the same one in all row groups."""
        if name not in self._windows:
            least, most = WINDOW
            self._windows[name] = _Window(min(max(WINDOWS // n_columns, least), most))
        return self._windows[name]


@contextmanager
def _as_not_plain() -> Iterator[None]:
    """Raise NotPlain for what is unexpected: pyarrow can read it, or says what is wrong."""
    try:
        yield
    except (OSError, ValueError, LookupError) as error:  # errors of Arrow are one of these
        raise NotPlain from error


def _array(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks else pyarrow().array([], column.type)


class _Pages:
    """Pages of a column chunk, one after the other."""

    def __init__(self, file: FileIO, chunk: Any, has_levels: bool, kind: Any, window: _Window):
        codec = CODECS[chunk.compression]
        self._codec = None if codec is None else pyarrow().Codec(codec)
        self._has_levels, self._kind, self._n_bytes = has_levels, kind, kind.bit_width // 8
        self._window = window
        window.begin(file, chunk.data_page_offset, chunk.total_compressed_size)
        self._values: Any = None
        self._first = self._n_values = 0

    def n_left(self, n_rows: int) -> int:
        """Return how many values are left of a page, at least one, where rows are left."""
        if self._first == self._n_values:
            self._next_page(n_rows)
        return self._n_values - self._first

    def take(self, count: int) -> Any:
        """Return the next values of the page as an array of Arrow."""
        start, self._first = self._first, self._first + count
        return pyarrow().Array.from_buffers(self._kind, count, [None, self._values], 0, start)

    def _next_page(self, n_rows: int) -> None:
        window = self._window
        at = window.read(HEADER)
        fields, stop = _fields(window.bytes, at)
        size, compressed, data = fields[SIZE], fields[COMPRESSED_SIZE], fields[DATA_PAGE]
        count = data[N_VALUES]
        levels = _levels_without_nulls(count) if self._has_levels else b""
        encodings = data[ENCODING], data[DEFINITION_LEVELS], data[REPETITION_LEVELS]
        is_known = fields[TYPE] == VERSION_1 and encodings in ((PLAIN, RLE, RLE), (PLAIN, RLE, BIT_PACKED))
        fits = min(FEWEST, n_rows) <= count <= n_rows and size == len(levels) + count * self._n_bytes
        if not is_known or not fits or compressed < 1:
            raise NotPlain
        page = window.take(stop - at, compressed)
        page = page.to_pybytes() if self._codec is None else self._codec.decompress(page, size)
        page = pyarrow().py_buffer(page)
        if page.size != size or page.slice(0, len(levels)).to_pybytes() != levels:
            raise NotPlain
        values = page.slice(len(levels))
        aligned = values.address % self._n_bytes == 0
        self._values = values if aligned else pyarrow().py_buffer(values.to_pybytes())
        self._first, self._n_values = 0, count


class _Window:
    """Bytes of a file around the next page of a column chunk; chunks take turns in its memory."""

    def __init__(self, size: int):
        self._allocate(size)

    def _allocate(self, size: int) -> None:
        self.bytes = bytearray(size)
        self._buffer = pyarrow().py_buffer(self.bytes)

    def begin(self, file: FileIO, start: int, size: int) -> None:
        """Begin with a chunk of a file."""
        self._file, self._at, self._end = file, start, start + size
        self._begin = self._filled = start

    def read(self, n_bytes: int) -> int:
        """Have the next bytes of the chunk here, and return where."""
        n_bytes = min(n_bytes, self._end - self._at)
        if self._filled < self._at + n_bytes:
            if len(self.bytes) < n_bytes:
                self._allocate(n_bytes)
            wanted = min(len(self.bytes), self._end - self._at)
            self._file.seek(self._at)
            found = self._file.readinto(memoryview(self.bytes)[:wanted])
            self._begin, self._filled = self._at, self._at + found
            if found < wanted:
                raise NotPlain
        return self._at - self._begin

    def take(self, n_header: int, size: int) -> Any:
        """Return the bytes after a header, and go on after them."""
        if self._at + n_header + size > self._end:
            raise NotPlain
        found = self._buffer.slice(self.read(n_header + size) + n_header, size)
        self._at += n_header + size
        return found


@lru_cache(maxsize=64)
def _levels_without_nulls(count: int) -> bytes:
    """Return the definition levels of values without nulls: a length, and one run of ones."""
    run, left = bytearray(), count << 1
    while left > 127:
        run.append(left & 127 | 128)
        left >>= 7
    run += bytes([left, 1])
    return len(run).to_bytes(4, "little") + run


def _fields(data: bytearray, at: int, depth: int = 0) -> tuple[dict[tuple[int, int], Any], int]:
    """Return the integers and structs of a struct by number and type of their fields, and where it ends."""
    found: dict[tuple[int, int], Any] = {}
    number = 0
    while head := data[at]:
        at, kind = at + 1, head & 15
        if head < 16 or (kind == STRUCT and depth == 2):
            raise NotPlain
        number += head >> 4
        if kind == STRUCT:
            found[number, kind], at = _fields(data, at, depth + 1)
        elif kind in INTEGERS or kind == BINARY:
            value, at = _varint(data, at) if data[at] > 127 else (data[at], at + 1)
            if kind == BINARY:
                at += value
            else:
                found[number, kind] = value >> 1 ^ -(value & 1)
        elif kind not in BOOLEANS:  # which have no bytes of their own
            raise NotPlain
    return found, at + 1


def _varint(data: bytearray, at: int) -> tuple[int, int]:
    """Return a number in base 128, lowest digits first, and where it ends."""
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1
