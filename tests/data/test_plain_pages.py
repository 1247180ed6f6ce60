"""PlainReader reads the same values as pyarrow, and leaves files that are not plain to pyarrow."""

import pickle

import numpy as np
import pytest

from ortlearn.data.opening import open_source
from ortlearn.data.page_headers import HEADER, read_page
from ortlearn.data.plain_pages import MAX_OTHERS, ROWS_OF_BLOCK, NotPlain, PlainReader
from ortlearn.data.sample_blocks import SampleBlock
from ortlearn.data.selection import Selection
from ortlearn.data.tables import Block, Table
from ortlearn.exceptions import SourceError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("pyarrow.dataset")

N_ROWS = 30_000


def table(n_rows=N_ROWS, nullable=True, nulls=0, second=np.float64):
    rng = np.random.default_rng(0)
    small, large = rng.standard_normal(n_rows).astype(np.float32), rng.standard_normal(n_rows, dtype=second)
    small[:3] = [np.nan, np.inf, -0.0]
    columns = [
        pa.array(small, mask=np.arange(n_rows) < nulls),
        pa.array(large),
        pa.array(rng.integers(0, 2, n_rows), pa.int8()),
    ]
    kinds = [("a", pa.float32()), ("b", pa.from_numpy_dtype(second)), ("label", pa.int8())]
    return pa.table(columns, schema=pa.schema([pa.field(*kind, nullable=nullable) for kind in kinds]))


def write(path, columns, **options):
    given = {"use_dictionary": False, "row_group_size": N_ROWS // 2} | options
    pq.write_table(columns, path / "part.parquet", **given)
    return path


def row_groups(path):
    return [
        group
        for fragment in datasets.dataset(path).get_fragments()
        for group in fragment.split_by_row_group()
    ]


def plain(path, y="label", **options):
    """Return the parts that are read without pyarrow's decoder."""
    schema = datasets.dataset(path).schema
    reader = PlainReader(Selection.of(schema, None, y, None), schema, **options)
    return [part for group in row_groups(path) for part in reader.rows(group, "a row group")]


def rows_of(path):
    """Return the rows of a source as bytes."""
    return as_bytes(SampleBlock.join(list(open_source(path, "label").blocks())))


def as_bytes(block):
    return block.X.matrix(np.dtype(np.float64)).tobytes(), block.y.tobytes()


def rows_of_pyarrow(path):
    found = pq.read_table(path)
    values = [found.column(name).to_numpy().astype(np.float64) for name in ("a", "b")]
    return np.stack(values, axis=1).tobytes(), found.column("label").to_numpy().tobytes()


PLAIN = {
    "snappy": {},
    "zstd": {"compression": "zstd"},
    "gzip": {"compression": "gzip"},
    "not compressed": {"compression": None},
    "long pages": {"data_page_size": 2**30, "max_rows_per_page": N_ROWS},
    "pages of other lengths in each column": {"data_page_size": 20_000, "max_rows_per_page": N_ROWS},
    "other labels in a dictionary": {"use_dictionary": ["label"]},
    "checksums": {"write_page_checksum": True},
}


@pytest.mark.parametrize("second", [np.float32, np.float64])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("form", PLAIN)
def test_plain_floats_equal_those_of_pyarrow(tmp_path, form, nullable, second):
    path = write(tmp_path, table(nullable=nullable, second=second), **PLAIN[form])
    parts = plain(path, block_bytes=8 * 4000)
    assert sum(map(len, parts)) == N_ROWS and len(parts) > 2
    assert {type(part.X) for part in parts} == {Block if second is np.float32 else Table}
    assert as_bytes(SampleBlock.join(parts)) == rows_of(path) == rows_of_pyarrow(path)


def test_numbers_that_snappy_compresses_are_decompressed(tmp_path):
    numbers = np.arange(N_ROWS, dtype=np.float32) % 7
    path = write(tmp_path, table().set_column(0, "a", pa.array(numbers)))
    assert sum(map(len, plain(path))) == N_ROWS and rows_of(path) == rows_of_pyarrow(path)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint32", "bool"])
def test_integers_equal_those_of_pyarrow(tmp_path, name):
    dtype = np.dtype(name)
    least, most = (0, 1) if name == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    drawn = np.random.default_rng(0).integers(least, most, N_ROWS, endpoint=True, dtype=np.int64)
    numbers = pa.array(drawn.astype(dtype))
    columns = table().set_column(2, "label", numbers).append_column("c", numbers)
    path = write(tmp_path, columns)
    assert sum(map(len, plain(path))) == N_ROWS
    found = SampleBlock.join(list(open_source(path, "label").blocks()))
    np.testing.assert_array_equal(found.y, drawn.astype(dtype), strict=True)
    assert found.X.frame(np.float64)["c"].dtype == dtype
    np.testing.assert_array_equal(found.X.frame(np.float64)["c"], drawn.astype(dtype))


def test_source_without_labels(tmp_path):
    path = write(tmp_path, table(second=np.float32).drop_columns(["label"]))
    assert all(part.y is None for part in plain(path, None)) and len(plain(path, None)) == 2


def test_blocks_are_tables_of_their_columns(tmp_path):
    path = write(tmp_path, table(second=np.float32))
    block = plain(path)[0].X
    same = Table(block.frame(np.float32).pipe(pa.RecordBatch.from_pandas))
    for one, other in ((block, same), (block[5:9], same[5:9]), (Table.join_parts([block, block[:2]]), None)):
        other = Table.join_parts([same, same[:2]]) if other is None else other
        assert one.shape == other.shape and one.width == other.width == 2 and one.holds_numbers
        assert one.matrix(np.dtype("f8")).tobytes() == other.matrix(np.dtype("f8")).tobytes()
    assert list(block.frame(np.float32).columns) == ["a", "b"]
    moved = pickle.loads(pickle.dumps(block))  # to another worker of a cluster
    assert moved.matrix(np.dtype("f4")).tobytes() == block.matrix(np.dtype("f4")).tobytes()


def test_wide_tables_are_read_in_blocks_of_few_thousand_rows(tmp_path):
    path = write(tmp_path, table(second=np.float32))
    assert [len(part) for part in plain(path, block_bytes=12 * 5000)] == [5000] * 6
    assert len(plain(path, block_bytes=8 * 50)[0]) == ROWS_OF_BLOCK[0]


OTHERS = {
    "dictionaries": {"use_dictionary": True},
    "version 2 of pages": {"data_page_version": "2.0"},
    "split bytes": {"use_byte_stream_split": ["a", "b"]},
    "lz4": {"compression": "lz4"},
    "short pages": {"max_rows_per_page": 500},
    "no statistics": {"write_statistics": False},
}


@pytest.mark.parametrize("form", OTHERS)
def test_other_files_are_left_to_pyarrow(tmp_path, form):
    path = write(tmp_path, table(), **OTHERS[form])
    with pytest.raises(NotPlain):
        plain(path)
    assert rows_of(path) == rows_of_pyarrow(path)


@pytest.mark.slow
def test_nulls_are_left_to_pyarrow(tmp_path):
    path = write(tmp_path, table(nulls=5))
    assert sum(map(len, plain(path))) == N_ROWS  # a column without nulls is plain
    n_rows = MAX_OTHERS // 4 + 1
    path = write(tmp_path, table(n_rows, nulls=5), row_group_size=n_rows, compression=None)
    with pytest.raises(NotPlain):  # it would have read one column of two, and left too much to pyarrow
        plain(path)
    found = np.frombuffer(rows_of(path)[0]).reshape(-1, 2)[:, 0]
    assert np.isnan(found[:5]).all() and rows_of(path) == rows_of_pyarrow(path)


def test_pyarrow_continues_after_the_last_plain_row(tmp_path):
    """The third page of a column declares another encoding of levels, which it has none of."""
    path = write(
        tmp_path, table(nullable=False), row_group_size=N_ROWS, max_rows_per_page=5000, compression=None
    )
    file = path / "part.parquet"
    content = bytearray(file.read_bytes())
    at = pq.read_metadata(file).row_group(0).column(0).data_page_offset
    for _ in range(2):
        at = read_page(bytes(content[at : at + HEADER]), at).stop
    place = content.index(b"\x15\x00\x15\x06\x15", at) + 3
    content[place] = 8
    file.write_bytes(content)
    (group,) = row_groups(path)
    schema = datasets.dataset(path).schema
    reader, parts = PlainReader(Selection.of(schema, None, "label", None), schema, 16 * 4000), []
    with pytest.raises(NotPlain):
        parts.extend(reader.rows(group, "a row group"))
    assert [len(part) for part in parts] == [4000, 4000]
    assert rows_of(path) == rows_of_pyarrow(path)


@pytest.mark.slow
@pytest.mark.sweep(1)
@np.errstate(invalid="ignore")  # damaged numbers are cast
@pytest.mark.parametrize("second", [np.float32, np.float64])
@pytest.mark.parametrize("compression", ["snappy", None])
def test_damaged_files_give_the_rows_or_the_error_of_pyarrow(tmp_path, compression, second):
    path = write(tmp_path, table(6000, second=second), row_group_size=3000, compression=compression)
    file, rng = path / "part.parquet", np.random.default_rng(1)
    content, metadata = file.read_bytes(), pq.read_metadata(file)
    chunks = [metadata.row_group(group).column(place) for group in range(2) for place in range(2)]
    outcomes = set()
    for trial in range(200):
        # Headers and levels are at the beginning of a chunk; every fourth time any byte.
        start = chunks[rng.integers(4)].data_page_offset
        at = rng.integers(4, len(content) - 5000) if trial % 4 == 0 else start + rng.integers(110)
        damaged = bytearray(content)
        damaged[at] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:
            expected = rows_of_pyarrow(path)
        except (OSError, ValueError):
            expected = None
        if expected is None:
            with pytest.raises(SourceError, match=r"Row group \d of .*part.parquet cannot be read"):
                rows_of(path)
        else:
            assert rows_of(path) == expected
        outcomes.add(expected is None)
    assert outcomes == {True, False}
