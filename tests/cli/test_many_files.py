"""Folders and patterns of data files, and trainings that read them in parts."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from ortlearn.evaluation.data_files import read_sample, read_table
from ortlearn.evaluation.frames import FrameParts, read_frame
from tests.cli.conftest import FEATURES, wine_frame

FAST = ("--label", "kind", "--drop", "region", "--drop", "weight", "--max-iter", "3", "--random-state", "0")


@pytest.fixture
def folder(tmp_path):
    """Return a folder of a csv file and two parquet files, one with another order of columns."""
    frame = wine_frame()
    (tmp_path / "rows" / "may").mkdir(parents=True)
    frame[:60].to_csv(tmp_path / "rows" / "a.csv", index=False)
    frame[60:110].to_parquet(tmp_path / "rows" / "b.parquet")
    frame.iloc[110:, ::-1].to_parquet(tmp_path / "rows" / "may" / "c.parquet")
    (tmp_path / "rows" / "_SUCCESS").touch()
    return tmp_path / "rows"


def test_folder_is_all_its_files(folder):
    pd.testing.assert_frame_equal(read_frame(str(folder), ",", ()), wine_frame())
    parts = list(FrameParts(str(folder), ",", (), size=25))
    assert [len(part) for part in parts] == [25, 25, 10, 25, 25, 25, 25, 18]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), wine_frame())


def test_pattern(folder):
    assert len(read_frame(str(folder / "**" / "*.parquet"), ",", ())) == len(wine_frame()) - 60
    assert len(read_frame(str(folder / "[ab].*"), ",", ())) == 110


def test_commands_take_folders(folder, run, tmp_path):
    whole = run("evaluate", "wine.skops", "wine.csv", "--label", "kind", "--json").result
    of_folder = run("evaluate", "wine.skops", folder, "--label", "kind", "--json").result
    assert of_folder["scores"] == whole["scores"]


@pytest.mark.slow
def test_stream_equals_a_training_in_memory(folder, run, tmp_path):
    rate = ("--learning-rate", "Adam", "--no-keep-better", "--test", "wine.csv", "--json")
    outputs = [tmp_path / "whole.onnx", tmp_path / "parts.onnx"]
    whole = run("train", "wine.onnx", folder, *FAST, *rate, "--out", outputs[0]).result
    parts = run("train", "wine.onnx", folder, *FAST, *rate, "--stream", "--out", outputs[1]).result
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    assert (parts["rows"], parts["scores"]) == (len(wine_frame()), whole["scores"])
    without = run(
        "train", "wine.onnx", folder, *FAST, "--stream", "--json", "--out", tmp_path / "new.onnx"
    ).result
    assert without["test_rows"] == 0 and without["scores"]["after"] is None


def test_wrong_folders_and_files(folder, run, tmp_path):
    def error(data):
        return run("train", "wine.onnx", data, *FAST, "--stream", "--out", tmp_path / "new.onnx").error

    assert "No .csv, .csv.gz, .parquet or .arrow file in this pattern" in error(str(folder / "*.pq"))
    assert "data must be a .csv" in error(str(folder / "_SUC*"))
    wine_frame()[FEATURES].to_csv(folder / "d.csv", index=False)
    assert "d.csv has the columns" in error(folder) and "all files need the same columns" in error(folder)
    frame = wine_frame()
    frame.loc[3, "kind"] = np.nan
    frame.to_csv(folder / "d.csv", index=False)
    assert "has no label in 1 of" in error(folder)


def columns_of_types():
    """Return texts of cells whose type is only known from all of them, by name."""
    return {
        "floats later": ["1", "2", "3", "4.5"],
        "gap later": ["1", "2", "3", ""],
        "text later": ["01", "2", "3", "x"],
        "gaps first": ["", "", "a", "b"],
        "gaps before numbers": ["", "", "3", "4"],
        "no value": ["", "", "", ""],
        "booleans": ["True", "False", "True", "False"],
        "booleans with gap": ["True", "False", "", "True"],
        "booleans and text": ["True", "False", "yes", "no"],
        "booleans and numbers": ["True", "False", "1", "2"],
        "too large": ["1", "2", "3", "99999999999999999999999"],
    }


@pytest.mark.parametrize("cells", columns_of_types().values(), ids=columns_of_types())
def test_types_of_parts_are_those_of_the_file(cells, tmp_path):
    lines = [f"{cell},{number}" for number, cell in enumerate(cells)]
    (tmp_path / "whole.csv").write_text("\n".join(["x,n", *lines]))
    expected = pd.read_csv(tmp_path / "whole.csv", low_memory=False)
    if cells[-1].startswith("999"):  # an object for pandas
        expected = expected.astype({"x": float})
    for size in (1, 2, 3, None):
        parts = list(FrameParts(str(tmp_path / "whole.csv"), ",", (), size))
        assert len({part["x"].dtype for part in parts}) == 1
        pd.testing.assert_frame_equal(pd.concat(parts), expected, check_index_type=False)
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, some in enumerate((lines[:2], lines[2:])):
        (folder / f"{number}.csv").write_text("\n".join(["x,n", *some]))
    pd.testing.assert_frame_equal(read_frame(str(folder), ",", ()), expected)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_types_of_binary_files(tmp_path, suffix):
    frames = [
        pd.DataFrame({"a": [1, 2], "b": [True, False], "c": ["x", "y"]}),
        pd.DataFrame({"a": pd.array([3, None], "float64"), "b": [True, None], "c": [None, "z"]}),
    ]
    for number, frame in enumerate(frames):
        path = tmp_path / f"{number}.{suffix}"
        frame.to_parquet(path) if suffix == "parquet" else frame.to_feather(path)
    expected = pd.concat(frames, ignore_index=True)
    for size in (1, 2, None):
        found = pd.concat(FrameParts(str(tmp_path), ",", (), size))
        assert found["a"].dtype == float and found["b"].dtype == object
        pd.testing.assert_frame_equal(
            found.fillna({"b": "-"}),
            expected.astype({"b": object}).fillna({"b": "-"}),
            check_index_type=False,
        )
    pd.DataFrame({"a": ["one"], "b": [True], "c": ["x"]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match="column 'a' of .* is number in one file and text in another"):
        read_frame(str(tmp_path), ",", ())


def test_hive_partitions_are_columns(tmp_path):
    for year in (2024, 2025):
        (tmp_path / f"year={year}").mkdir()
        pd.DataFrame({"x": np.arange(3.0)}).to_parquet(tmp_path / f"year={year}" / "rows.parquet")
    expected = pd.DataFrame({"x": [0.0, 1.0, 2.0] * 2, "year": [2024] * 3 + [2025] * 3})
    for size in (2, None):
        found = pd.concat(FrameParts(str(tmp_path), ",", (), size))
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_index_type=False)


def test_csv_file_is_parsed_once(tmp_path):
    """The file is gone when its parts are read again, and the copy is removed with them."""
    path = tmp_path / "rows.csv"
    wine_frame().to_csv(path, index=False)
    parts = FrameParts(str(path), ",", (), size=50)
    path.unlink()
    copy = parts._copies._path
    for _ in range(2):
        pd.testing.assert_frame_equal(pd.concat(parts), wine_frame(), check_index_type=False)
    del parts
    assert not os.path.exists(copy)


def test_sample_is_uniform_and_in_order(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame({"x": np.arange(3000), "y": np.arange(3000) % 2}).to_csv(path, index=False)
    counts = np.zeros(3000)
    for seed in range(30):
        table, n_seen = read_sample(str(path), 300, seed, label="y")
        x = table.features["x"].to_numpy()
        assert (len(table), n_seen) == (300, 3000) and (np.diff(x) > 0).all()
        assert (table.labels == x % 2).all()
        counts[x] += 1
    tenths = counts.reshape(10, 300).sum(axis=1)  # 900 expected each, with standard deviation 28
    assert (np.abs(tenths - 900) < 140).all()
    whole, _ = read_sample(str(path), 3000, 0, label="y")
    pd.testing.assert_frame_equal(whole.features, read_table(str(path), label="y").features)


MEMORY = """
import resource, sys
from ortlearn.cli import main
status = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
sys.exit(status if status not in (3, 4) else 0)
"""


def peak(folder, *arguments):
    """Return the largest memory of a command in another process, in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs getrusage")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_features(tmp_path, suffix):
    """Samples beyond the first parts take the memory of their labels and predictions."""
    rng, n_columns = np.random.default_rng(0), 40
    names, sizes = [f"x{number}" for number in range(n_columns)], []
    for number, n_rows in enumerate((40_000, 140_000)):
        X = pd.DataFrame(rng.normal(size=(n_rows, n_columns)).astype(np.float32), columns=names)
        X["y"] = X["x0"] + rng.normal(size=n_rows) > 0
        path = tmp_path / f"{number}.{suffix}"
        X.to_csv(path, index=False) if suffix == "csv" else X.to_parquet(path)
        sizes.append(8 * n_rows * n_columns)
    skops.io.dump(LogisticRegression().fit(X[names][:500], X["y"][:500]), tmp_path / "model.skops")
    for command in (
        ("evaluate", "model.skops", "DATA"),
        ("compare", "model.skops", "model.skops", "DATA", "--resamples", "2"),
        ("predict", "model.skops", "DATA", "--out", "predictions.csv", "--force"),
        ("adapt", "model.skops", "DATA", "--max-samples", "2000", "--candidate", "refit"),
    ):
        peaks = [
            peak(tmp_path, *(f"{n}.{suffix}" if word == "DATA" else word for word in command), "--label", "y")
            for n in (0, 1)
        ]
        growth = (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])
        assert growth < 0.6, f"{command[0]}: {peaks[0] / 2**20:.0f}, {peaks[1] / 2**20:.0f} MiB"
