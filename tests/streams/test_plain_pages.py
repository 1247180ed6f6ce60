"""Plain floats of parquet files are read as pyarrow reads them, and everything else by pyarrow."""

import numpy as np
import pytest

from ortlearn.exceptions import SourceError
from ortlearn.streams import Rows, open_source, plain_pages
from ortlearn.streams.plain_pages import NotPlain, PlainReader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("pyarrow.dataset")

N_ROWS = 30_000


def table(n_rows=N_ROWS, nullable=True, nulls=0):
    rng = np.random.default_rng(0)
    small, large = rng.standard_normal(n_rows).astype(np.float32), rng.standard_normal(n_rows)
    small[:3] = [np.nan, np.inf, -0.0]
    columns = [
        pa.array(small, mask=np.arange(n_rows) < nulls),
        pa.array(large),
        pa.array(rng.integers(0, 2, n_rows), pa.int8()),
    ]
    kinds = [("a", pa.float32()), ("b", pa.float64()), ("label", pa.int8())]
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


def plain(path, columns=("a", "b", "label")):
    """Return what is read without pyarrow's decoder, in batches."""
    reader = PlainReader(columns, datasets.dataset(path).schema)
    return [batch for group in row_groups(path) for batch in reader.batches(group)]


def rows_of(path):
    """Return the rows that a source gives, as bytes."""
    found = Rows.join(list(open_source(path, "label").blocks()))
    return found.X.matrix(np.dtype(np.float64)).tobytes(), found.y.tobytes()


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


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("form", PLAIN)
def test_plain_floats_are_those_of_pyarrow(tmp_path, form, nullable):
    columns = table(nullable=nullable)
    path = write(tmp_path, columns, **PLAIN[form])
    batches = plain(path)
    assert len(batches) >= 2 and all(batch.num_rows >= 1000 for batch in batches)
    for name in columns.column_names:
        parts = [batch.column(batch.schema.get_field_index(name)) for batch in batches]
        assert all(part.to_numpy(zero_copy_only=False).flags.aligned for part in parts)
        assert pa.concat_arrays(parts).equals(columns.column(name).combine_chunks()) or name == "a"  # NaN
    assert rows_of(path) == rows_of_pyarrow(path)


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


def test_nulls_are_left_to_pyarrow(tmp_path, monkeypatch):
    path = write(tmp_path, table(nulls=5))
    monkeypatch.setattr(plain_pages, "OTHERS", 0)
    with pytest.raises(NotPlain):  # it would have read one column of two, and left too much to pyarrow
        plain(path)
    found = np.frombuffer(rows_of(path)[0]).reshape(-1, 2)[:, 0]
    assert np.isnan(found[:5]).all() and rows_of(path) == rows_of_pyarrow(path)


def test_what_cannot_be_read_further_is_read_by_pyarrow_from_there(tmp_path, monkeypatch):
    path = write(tmp_path, table(), row_group_size=N_ROWS, max_rows_per_page=5000)
    own, pages = plain_pages._Pages._next_page, []

    def next_page(self, n_rows):
        pages.append(n_rows)
        if len(pages) == 5:  # two of each column were read
            raise NotPlain
        own(self, n_rows)

    monkeypatch.setattr(plain_pages._Pages, "_next_page", next_page)
    source = open_source(path, "label")
    parts = list(source.blocks())
    assert [len(part) for part in parts[:2]] == [5000, 5000] and len(pages) == 5
    found = Rows.join(parts)
    np.testing.assert_array_equal(
        found.X.matrix(np.dtype(float)).ravel(), np.frombuffer(rows_of_pyarrow(path)[0])
    )


@np.errstate(invalid="ignore")  # damaged numbers are cast
@pytest.mark.parametrize("compression", ["snappy", None])
def test_damaged_files_give_what_pyarrow_gives(tmp_path, compression):
    path = write(tmp_path, table(6000), row_group_size=3000, compression=compression)
    file, rng = path / "part.parquet", np.random.default_rng(1)
    content, metadata = file.read_bytes(), pq.read_metadata(file)
    chunks = [metadata.row_group(group).column(place) for group in range(2) for place in range(2)]
    outcomes = set()
    for trial in range(200):
        # Headers and levels are at the beginning of a chunk; every fourth time any byte.
        start = chunks[rng.integers(4)].data_page_offset
        at = rng.integers(4, 36_000) if trial % 4 == 0 else start + rng.integers(110)
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


def test_a_column_of_a_wide_file_has_a_small_window():
    reader = PlainReader([], pa.schema([]))
    for n_columns, size in ((1, 2**18), (100, 2**24 // 100), (5000, 2**16)):
        assert len(reader._window(str(n_columns), n_columns).bytes) == size
