"""Parquet files, datasets, tables, readers and Arrow streams."""

import os

import numpy as np
import pytest

from ortlearn.data.opening import is_source, open_source
from ortlearn.data.sample_blocks import SampleBlock
from ortlearn.exceptions import SourceError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("pyarrow.dataset")

FLOAT32 = np.dtype(np.float32)


def table(n_rows=10, start=0):
    numbers = np.arange(start, start + n_rows)
    return pa.table(
        {
            "a": pa.array(numbers, pa.float32()),
            "b": pa.array(-numbers, pa.int64()),
            "label": pa.array(numbers % 3, pa.int8()),
            "weight": pa.array(numbers + 0.5, pa.float64()),
        }
    )


class Stream:
    """Object with ``__arrow_c_stream__`` only."""

    def __init__(self, columns):
        self.columns_of_arrow = columns

    def __arrow_c_stream__(self, requested_schema=None):
        return self.columns_of_arrow.to_reader(max_chunksize=3).__arrow_c_stream__(requested_schema)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    pq.write_table(table(10), path / "part-0.parquet", row_group_size=4)
    pq.write_table(table(5, 10), path / "part-1.parquet", row_group_size=4)
    return path


def whole(source, **options):
    return SampleBlock.join(list(source.blocks(**options)))


def check(source, n_rows=15):
    """Check all samples, twice, since a source can be read several times."""
    numbers = np.arange(n_rows)
    for _ in range(2):
        samples = whole(source)
        np.testing.assert_array_equal(samples.X.matrix(FLOAT32), np.stack([numbers, -numbers], axis=1))
        np.testing.assert_array_equal(samples.y, numbers % 3)
        np.testing.assert_array_equal(samples.sample_weight, numbers + 0.5)
    assert source.names == ["a", "b"]


#: Forms of a source, of a folder and of the table of all its rows.
FORMS = {
    "folder": lambda folder, _: folder,
    "text": lambda folder, _: str(folder),
    "dataset": lambda folder, _: datasets.dataset(folder),
    "table": lambda _, both: both,
    "polars": lambda _, both: pytest.importorskip("polars").from_arrow(both),
    "duckdb": lambda _, both: pytest.importorskip("duckdb").from_arrow(both).order("a"),
    "pandas": lambda _, both: both.to_pandas(),
    "stream": lambda _, both: Stream(both),
    "reader": lambda _, both: both.to_reader(max_chunksize=4),
    "function": lambda folder, _: lambda: datasets.dataset(folder).scanner().to_reader(),
    "function of a stream": lambda _, both: lambda: Stream(both),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_kinds_of_sources_yield_the_same_samples(folder, form):
    both = pa.concat_tables([table(10), table(5, 10)])
    source = open_source(FORMS[form](folder, both), "label", "weight")
    check(source)
    source.close()


def test_blocks_of_parquet_files_are_row_groups(folder):
    source = open_source(folder, "label")
    assert source.sizes == [4, 4, 2, 4, 1]
    samples = whole(source, numbers=[3, 0])
    assert samples.X.matrix(FLOAT32)[:, 0].tolist() == [10, 11, 12, 13, 0, 1, 2, 3]
    assert "weight" in source.names


def test_columns_are_selected_and_ordered(folder):
    source = open_source(folder, "label", features=["b", "a"])
    assert whole(source).X.matrix(FLOAT32)[1].tolist() == [-1.0, 1.0] and source.names == ["b", "a"]
    several = whole(open_source(folder, ["label", "b"], features="a"))
    assert several.y.shape == (15, 2) and several.X.shape == (15, 1)
    assert whole(source, features=False).X is None
    for arguments, message in (
        (("missing",), "no columns \\['missing'\\]"),
        (("label", None, ["c"]), "no columns \\['c'\\]"),
        ((["a", "b", "label", "weight"],), "No column is left"),
        ((np.arange(15),), "y must be the name of a column"),
    ):
        with pytest.raises(ValueError, match=message):
            open_source(folder, *arguments)


def test_hive_partitions_are_columns(tmp_path):
    for year in (2001, 2002):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table(3).select(["a", "label"]), tmp_path / f"year={year}" / "x.parquet")
    source = open_source(tmp_path, "label")
    found = whole(source).X.matrix(FLOAT32)
    assert source.names == ["a", "year"] and found[:, 1].tolist() == [2001] * 3 + [2002] * 3
    filtered = datasets.dataset(tmp_path, partitioning="hive").filter(datasets.field("a") > 0)
    found = whole(open_source(filtered, "label")).X.matrix(FLOAT32)
    assert found.tolist() == [[1, 2001], [2, 2001], [1, 2002], [2, 2002]]


def test_rows_of_a_filtered_dataset(folder):
    filtered = datasets.dataset(folder).filter(datasets.field("a") >= 12)
    source = open_source(filtered, "label", "weight")
    assert source.sizes is None  # how many rows of a row group are left is not known
    assert whole(source).X.matrix(FLOAT32)[:, 0].tolist() == [12, 13, 14]


def test_lists_of_numbers_are_a_matrix():
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    columns = pa.table({"X": pa.FixedSizeListArray.from_arrays(values.ravel(), 3), "y": [0, 1, 0, 1]})
    found = whole(open_source(columns, "y")).X
    np.testing.assert_array_equal(found.matrix(FLOAT32), values)
    np.testing.assert_array_equal(found[1:3].matrix(FLOAT32), values[1:3])


def test_nulls_are_nan_in_features_and_errors_in_labels():
    columns = pa.table({"a": [1, None], "b": [True, None], "y": [1, None]})
    found = whole(open_source(columns.drop(["y"]))).X.matrix(FLOAT32)
    np.testing.assert_array_equal(found, [[1, 1], [np.nan, np.nan]])
    with pytest.raises(SourceError, match="'y' has 1 nulls in rows 0 to 1"):
        whole(open_source(columns, "y"))


def test_text_columns_become_a_dataframe():
    pandas = pytest.importorskip("pandas")
    columns = pa.table({"city": ["Oslo", "Rome"], "y": pa.array(["x", "y"]).dictionary_encode()})
    samples = whole(open_source(columns, "y"))
    assert not samples.X.holds_numbers and samples.y.tolist() == ["x", "y"]
    frame = samples.X.frame(FLOAT32)
    assert isinstance(frame, pandas.DataFrame) and frame["city"].tolist() == ["Oslo", "Rome"]


def test_error_names_the_corrupt_row_group(folder):
    path = folder / "part-0.parquet"
    group = pq.ParquetFile(path).metadata.row_group(1)
    chunk = group.column(0)
    content = bytearray(path.read_bytes())
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    blocks = open_source(folder, "label", features=["a"]).blocks()
    assert len(next(blocks)) == 4
    with pytest.raises(SourceError, match=r"^Row group 1 of .*part-0.parquet cannot be read"):
        next(blocks)


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(
        SourceError, match="No parquet files can be read at .*nowhere': there is no such file"
    ):
        open_source(tmp_path / "nowhere")
    for options in ({}, {"y": "label"}, {"features": ["a"]}):
        with pytest.raises(SourceError, match="the folder is empty"):
            open_source(tmp_path, **options)
    (tmp_path / "x.parquet").write_bytes(b"PAR1 this is none")
    with pytest.raises(SourceError, match="x.parquet"):
        open_source(tmp_path / "x.parquet")


def test_reader_is_copied_to_a_temporary_file_that_is_removed(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = open_source(table(10).to_reader(max_chunksize=4), "label", "weight")
    check(source, 10)
    assert source.sizes == [4, 4, 2] and source._file.close.alive
    samples = whole(source, numbers=[2, 0])
    assert samples.X.matrix(FLOAT32)[:, 0].tolist() == [8, 9, 0, 1, 2, 3]
    path = source._file.path
    source.close()
    assert not os.path.exists(path) and not [n for n in os.listdir(tmp_path) if n.startswith("ortlearn-")]


def test_is_source_of_arrow_objects(folder):
    columns = table()
    assert all(map(is_source, (folder, datasets.dataset(folder), columns.to_reader(), Stream(columns))))
    assert not is_source(columns)


def test_function_of_batches_without_columns_is_rejected():
    with pytest.raises(ValueError, match="returns list, which has no columns"):
        open_source(lambda: [np.ones((2, 2))], "label")


def test_missing_pyarrow_is_an_import_error(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"ortlearn\[streams\]"):
        open_source("folder")


@pytest.mark.parametrize(
    "first, second",
    [
        (pa.array([1, 2]), pa.array([0.5, 1.5], pa.float32())),
        (pa.array([0.5, 1.5], pa.float32()), pa.array([1, 2**20 + 1])),
        (pa.array([1, 2], pa.int8()), pa.array([300, 400])),
        (pa.array([1.0, 2.0], pa.float32()), pa.array([0.1, 0.2])),
        (pa.array([None, None]), pa.array([1.0, 2.0])),
        (pa.array([1.0, 2.0]), pa.array([None, None])),
    ],
)
def test_types_of_files_are_converted_without_loss(tmp_path, first, second):
    for number, column in enumerate((first, second)):
        pq.write_table(pa.table({"a": column, "b": [0.0, 0.0]}), tmp_path / f"part-{number}.parquet")
    found = whole(open_source(tmp_path)).X.matrix(np.dtype(np.float64))[:, 0]
    expected = [np.nan if value is None else value for value in (*first.to_pylist(), *second.to_pylist())]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()]
)
def test_text_labels_of_different_types(tmp_path, kind):
    for number, labels in enumerate((pa.array(["u", "v"]), pa.array(["v", "w"]).cast(kind))):
        pq.write_table(pa.table({"a": [1.0, 2.0], "y": labels}), tmp_path / f"part-{number}.parquet")
    assert whole(open_source(tmp_path, "y")).y.tolist() == ["u", "v", "v", "w"]


def test_types_of_a_filtered_dataset_are_not_converted(tmp_path):
    for number, column in enumerate(([1, 2], [0.5, 1.5])):
        pq.write_table(pa.table({"a": column}), tmp_path / f"part-{number}.parquet")
    filtered = datasets.dataset(tmp_path).filter(datasets.field("a") > 0)
    with pytest.raises(SourceError, match="'a' has the type double in file .*part-1.parquet, and int64 in"):
        open_source(filtered)
    declared = datasets.dataset(tmp_path, schema=pa.schema([("a", pa.float32())]))
    assert whole(open_source(declared)).X.matrix(FLOAT32).ravel().tolist() == [1.0, 2.0, 0.5, 1.5]


def test_columns_of_files_are_matched_by_name(folder):
    names = table().schema.names
    pq.write_table(table(5, 10).select(names[::-1]), folder / "part-1.parquet", row_group_size=4)
    check(open_source(folder, "label", "weight"))
    pq.write_table(table(5, 10).append_column("c", table(5)["a"]), folder / "part-1.parquet")
    check(open_source(folder, "label", "weight", features=["a", "b"]))


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_categories_of_polars_as_labels(kind):
    polars = pytest.importorskip("polars")
    labels = polars.Series(["no", "yes", "no"])
    dtype = polars.Categorical if kind == "Categorical" else polars.Enum(["yes", "no"])
    frame = polars.DataFrame({"a": [1.0, 2.0, 3.0], "y": labels.cast(dtype)})
    assert whole(open_source(frame, "y")).y.tolist() == ["no", "yes", "no"]
    both = whole(open_source(polars.concat([frame, frame], rechunk=False), "y"))
    assert both.y.tolist() == ["no", "yes", "no"] * 2
