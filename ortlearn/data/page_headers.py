"""Parse the headers of parquet pages, and find the values of a page in its file.

Formats: parquet.thrift of parquet-format 2.11, the compact protocol of Apache Thrift, and snappy's
format_description.txt of 2011.
"""

from __future__ import annotations

import re
from functools import lru_cache
from io import FileIO
from typing import NamedTuple

__all__ = ["HEADER", "NotPlain", "Page", "levels_without_nulls", "literals", "read_page"]

#: Bytes that are read to parse a header; the header of a page of floats is shorter than 100 bytes.
HEADER = 512
#: Tag of literals in snappy, and their minimal size: pages with shorter literals are decompressed.
LITERAL, MIN_LITERAL = 0, 4096


def _fields(kind: int) -> bytes:
    """Return a pattern of the first byte of a field: the increment of the field number, and the type."""
    return b"[%s]" % b"".join(b"\\x%02x" % (distance << 4 | kind) for distance in range(1, 9))


#: Patterns of an integer (base 128, lowest digit first), of bytes with a float, and of a field of statistics.
INTEGER = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
BYTES = _fields(8) + rb"(?:\x04.{4}|\x08.{8})"
STATISTIC = b"|".join([BYTES, _fields(6) + INTEGER, _fields(1), _fields(2)])
#: Page header: type 0, sizes, optional checksum; then the header of a data page of version 1: number of
#: values, encoding 0 (plain), encodings of the levels 3 (runs) and 3 or 4, optional statistics.
PATTERN = re.compile(
    b"".join(
        [
            rb"\x15\x00\x15(%s)\x15(%s)(?:\x15%s\x1c|\x2c)" % (INTEGER, INTEGER, INTEGER),
            rb"\x15(%s)\x15\x00\x15\x06\x15[\x06\x08](?:\x1c(?:%s)*\x00)?\x00\x00" % (INTEGER, STATISTIC),
        ]
    ),
    re.DOTALL,
)


class NotPlain(Exception):
    """The next rows of a row group are not plain; the rows before them are valid."""


class Page(NamedTuple):
    """Data page of plain values: number of values, decompressed size, and position in the file."""

    n_values: int
    size: int
    start: int
    stop: int


def read_page(data: bytes, at: int) -> Page:
    """Return the page whose header is at the beginning of ``data``, at position ``at`` of the file."""
    found = PATTERN.match(data)
    if found is None:
        raise NotPlain
    size, compressed, n_values = map(_signed, found.groups())
    start = at + found.end()
    return Page(n_values, size, start, start + compressed)


@lru_cache(maxsize=256)
def _signed(digits: bytes) -> int:
    """Return a zigzag-encoded integer of Thrift, whose lowest bit is the sign."""
    value = _unsigned(digits)[0]
    return value >> 1 ^ -(value & 1)


def _unsigned(data: bytes) -> tuple[int, int]:
    """Return the base-128 integer at the beginning of ``data``, and its length in bytes."""
    value = at = 0
    while data[at] > 127:
        value |= (data[at] & 127) << 7 * at
        at += 1
    return value | data[at] << 7 * at, at + 1


@lru_cache(maxsize=64)
def levels_without_nulls(count: int) -> bytes:
    """Return the definition levels of values without nulls: a length, and one run of ones."""
    run, left = bytearray(), count << 1
    while left > 127:
        run.append(left & 127 | 128)
        left >>= 7
    run += bytes([left, 1])
    return len(run).to_bytes(4, "little") + run


def literals(file: FileIO, page: Page, data: bytes) -> list[tuple[int, int]]:
    """Return the positions in the file of the literals of a snappy page, if it has nothing else.

    Snappy writes blocks of 64 KB without repetitions, such as measured numbers, as literals. ``data`` are the
    first bytes of the page. The list is empty if the page must be decompressed.
    """
    size, at = _unsigned(data)
    found: list[tuple[int, int]] = []
    left = page.size
    while size == page.size and left:
        tag = data[at : at + 5]
        if len(tag) < 5:
            file.seek(page.start + at)
            tag = file.read(5)
        kind, length = tag[0] & 3, tag[0] >> 2
        n_bytes = max(length - 59, 0)  # size of the length, if it is not in the tag
        length = (int.from_bytes(tag[1 : 1 + n_bytes], "little") if n_bytes else length) + 1
        if kind != LITERAL or not min(MIN_LITERAL, left) <= length <= left:
            return []
        start = page.start + at + 1 + n_bytes
        found.append((start, start + length))
        at, left = at + 1 + n_bytes + length, left - length
    return found if page.start + at == page.stop else []
