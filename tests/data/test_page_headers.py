"""Headers of pages, and literals of snappy."""

import io

import numpy as np
import pytest

from ortlearn.data.page_headers import NotPlain, Page, levels_without_nulls, literals, read_page

pa = pytest.importorskip("pyarrow")

#: Fields 1 to 3 and 5 of a page header: type 0, 300 bytes, 200 bytes when compressed, 70 plain values.
BEGIN, DATA = b"\x15\x00\x15\xd8\x04\x15\x90\x03", b"\x15\x8c\x01\x15\x00\x15\x06\x15\x06"


@pytest.mark.parametrize(
    "header",
    [
        BEGIN + b"\x2c" + DATA + b"\x00\x00",
        BEGIN + b"\x15\xff\xff\xff\xff\x0f\x1c" + DATA + b"\x00\x00",  # a checksum
        BEGIN + b"\x2c" + DATA[:-1] + b"\x08\x00\x00",  # levels of repetitions as packed bits
        BEGIN + b"\x2c" + DATA + b"\x1c\x36\x00\x28\x04\x00\x15\x0a\x00\x18\x04abcd\x11\x12\x00\x00\x00",
        BEGIN + b"\x2c" + DATA + b"\x1c\x18\x08\x00\x00\x00abcde\x18\x08abcdefgh\x00\x00\x00",
    ],
)
def test_headers_of_plain_pages(header):
    found = read_page(header + b"\x00\x15", 1000)
    assert found == Page(70, 300, 1000 + len(header), 1200 + len(header))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\x15\x02" + BEGIN[2:] + b"\x2c" + DATA + b"\x00\x00",  # of another kind
        BEGIN + b"\x5c" + DATA + b"\x00\x00",  # of version 2
        BEGIN + b"\x2c" + DATA.replace(b"\x15\x00", b"\x15\x10") + b"\x00\x00",  # of a dictionary
        BEGIN + b"\x2c" + DATA + b"\x1c\x18\x7fabc\x00\x00\x00",  # invalid bounds
        (BEGIN + b"\x2c" + DATA + b"\x00\x00")[:-1],
    ],
)
def test_other_headers_raise_not_plain(header):
    with pytest.raises(NotPlain):
        read_page(header, 0)


@pytest.mark.parametrize(
    ("count", "run"), [(1, b"\x02"), (63, b"\x7e"), (64, b"\x80\x01"), (20_000, b"\xc0\xb8\x02")]
)
def test_levels_are_one_run_of_ones(count, run):
    assert levels_without_nulls(count) == bytes([len(run) + 1, 0, 0, 0]) + run + b"\x01"


def compressed(tmp_path, values):
    """Return a file with a snappy page after seven other bytes, and the page."""
    content = pa.Codec("snappy").compress(values, asbytes=True)
    path = tmp_path / "page"
    path.write_bytes(b"before " + content + b" after")
    return io.FileIO(path), Page(0, len(values), 7, 7 + len(content)), content


@pytest.mark.parametrize("size", [1, 59, 60, 61, 255, 256, 257, 5000, 65_536, 65_537, 200_000])
def test_literals_of_snappy_are_found(tmp_path, size):
    values = np.random.default_rng(size).bytes(size)
    file, page, content = compressed(tmp_path, values)
    with file:
        for n_bytes in (20, 512):
            parts = literals(file, page, content[:n_bytes])
            assert parts and b"".join((b"before " + content)[start:stop] for start, stop in parts) == values


def test_compressed_snappy_pages_have_no_literals(tmp_path):
    repeated = np.random.default_rng(0).bytes(70_000)
    for values in (bytes(10_000), repeated[:200] * 50, repeated + bytes(9000)):
        file, page, content = compressed(tmp_path, values)
        with file:
            assert literals(file, page, content[:512]) == []


def test_damaged_snappy_pages_have_no_literals(tmp_path):
    file, page, content = compressed(tmp_path, np.random.default_rng(0).bytes(70_000))
    with file:
        assert literals(file, page, content[:512])
        for other in (page._replace(size=70_001), page._replace(stop=page.stop - 1)):
            assert literals(file, other, content[:512]) == []
        for at in range(6):  # the length, the tag, and the length of the first literal
            damaged = bytearray(content[:512])
            damaged[at] ^= 4
            assert literals(file, page, bytes(damaged)) == []
