"""Folders and patterns of data files, and trainings that read them in parts."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from ortlearn.evaluation.data_files import TableParts, read_sample, read_table
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
    path, frame = tmp_path / "rows.csv", pd.DataFrame(np.arange(600_000).reshape(3000, 200) % 7)
    frame = frame.rename(columns=str).assign(text=[None, "a", "b"] * 1000)
    frame.to_csv(path, index=False)
    parts = FrameParts(str(path), ",", ())
    path.unlink()
    copy = parts._copies._file.path
    for _ in range(2):
        pd.testing.assert_frame_equal(pd.concat(parts), frame, check_index_type=False)
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


def content_of(frame, kind):
    """Return a frame as the content of a data file."""
    file = io.BytesIO()
    if kind == "csv":
        return frame.to_csv(index=False).encode()
    if kind == "csv.gz":
        return gzip.compress(frame.to_csv(index=False).encode())
    if kind == "parquet":
        frame.to_parquet(file, use_dictionary=False)
    elif kind == "arrow":
        frame.to_feather(file)
    else:  # the format of streams, in batches, with a dictionary of each
        for name in frame.columns[frame.dtypes.eq(object) | frame.dtypes.eq("str")]:
            frame = frame.astype({name: "category"})
        batches = pa.Table.from_pandas(frame).to_batches(max_chunksize=50)
        with pa.ipc.new_stream(file, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "arrow stream"])
def test_standard_input(kind, run, monkeypatch, tmp_path):
    """The stored copy is removed; the types of columns are those of all rows."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    frame = wine_frame().astype({"region": object})
    frame.loc[150:, "region"] = None
    content = content_of(frame, kind)
    expected = run("evaluate", "wine.skops", "wine.csv", "--label", "kind", "--json").result["scores"]
    for path in ("-", "/dev/stdin"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        found = run("evaluate", "wine.skops", path, "--label", "kind", "--json").result
        assert found["scores"] == pytest.approx(expected) and found["data"] == path
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content[: len(content) // 2])))
    if kind != "csv":
        assert (
            "standard input cannot be read as" in run("evaluate", "wine.skops", "-", "--label", "kind").error
        )


KILLED = """
import sys, time
from ortlearn.evaluation.input_files import data_files
stored = data_files("-")
print(open(stored[0].path).read(), flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs paths of descriptors")
def test_a_killed_process_leaves_no_copy_of_its_standard_input(tmp_path):
    pipe, places = subprocess.PIPE, {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", KILLED], stdin=pipe, stdout=pipe, env=places) as child:
        child.stdin.write(b"stored")
        child.stdin.close()
        assert child.stdout.readline() == b"stored\n"  # it has the copy, and waits
        child.kill()
    assert not list(tmp_path.iterdir())


def test_standard_input_is_read_by_commands_that_need_several_passes(run, monkeypatch, tmp_path):
    out, rest = tmp_path / "new.onnx", (*FAST, "--stream", "--json")
    expected = run("train", "wine.onnx", "wine.csv", *rest, "--out", tmp_path / "file.onnx").result
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content_of(wine_frame(), "csv"))))
    found = run("train", "wine.onnx", "-", *rest, "--out", out).result
    assert found["loss"] == expected["loss"] and found["rows"] == len(wine_frame())
    assert out.read_bytes() == (tmp_path / "file.onnx").read_bytes()
    assert "standard input is empty" in run("predict", "wine.onnx", "-", "--out", tmp_path / "p.csv").error


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipe(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    content = content_of(wine_frame(), "arrow stream")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    found = run("predict", "wine.skops", tmp_path / "pipe", "--out", tmp_path / "piped.csv", "--json").result
    writer.join()
    run("predict", "wine.skops", "wine.csv", "--out", tmp_path / "file.csv")
    assert found["unused_columns"] == ["kind", "region", "weight"]
    assert (tmp_path / "piped.csv").read_bytes() == (tmp_path / "file.csv").read_bytes()


def test_files_in_the_format_of_streams(run, tmp_path):
    (tmp_path / "rows.arrow").write_bytes(content_of(wine_frame(), "arrow stream"))
    found = read_frame(str(tmp_path / "rows.arrow"), ",", ())
    pd.testing.assert_frame_equal(
        found.astype({"kind": object}), wine_frame().astype({"kind": object}), check_dtype=False
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_columns_that_are_not_used_are_not_read(suffix, run, tmp_path):
    """Neither in the parts, which have more rows then, nor of the wrong kind in another file."""
    for number, part in enumerate((wine_frame()[:60], wine_frame()[60:].assign(region=1.5))):
        (tmp_path / f"{number}.{suffix}").write_bytes(content_of(part, suffix))
    rest = ("--label", "kind", "--json")
    found = run("evaluate", "wine.skops", tmp_path, *rest).result
    expected = run("evaluate", "wine.skops", "wine.csv", *rest).result
    assert found == expected | {"data": str(tmp_path)}
    parts = TableParts(str(tmp_path), used=FEATURES, label="kind", drop=["weight"])
    assert parts.feature_names == [*FEATURES, "region"]
    assert [list(part.features.columns) for part in parts] == [FEATURES] * 2
    for column in ("absent", "kind"):
        with pytest.raises(ValueError, match=f"column '{column}'"):
            TableParts(str(tmp_path), used=FEATURES, label="kind", drop=[column]).__iter__().__next__()
    message = "lacks columns that the model takes: .'proline'.; its features are .*'region'"
    (tmp_path / f"0.{suffix}").unlink()
    part = wine_frame().drop(columns="proline")
    (tmp_path / f"1.{suffix}").write_bytes(content_of(part, suffix))
    assert re.search(message, run("evaluate", "wine.skops", tmp_path, "--label", "kind").error)


PEAKS = """
import json, os, resource, sys
import pandas, pyarrow.dataset, skops.io, sklearn.linear_model
import ortlearn.cli.adapt, ortlearn.cli.compare, ortlearn.cli.evaluate, ortlearn.cli.predict
from ortlearn.cli import main

def peak(arguments):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = main(arguments)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(write, json.dumps([status, used]).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as file:
        return json.load(file)

print(json.dumps([peak(arguments) for arguments in json.loads(sys.argv[1])]))
"""


def peaks_of(folder, commands):
    """Return the largest memory of commands in bytes, each in a process that begins after the imports."""
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, json.dumps(commands)], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {status for status, _ in found} <= {0, 3, 4}, done.stderr
    return [used for _, used in found]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("suffix, numbers", [("csv", (5_000, 30_000)), ("parquet", (20_000, 40_000))])
def test_memory_does_not_grow_with_the_features(tmp_path, suffix, numbers):
    """Samples beyond the first parts take the memory of their labels and predictions.

    pyarrow reads 64 KiB of each column of a parquet file at a time, and dictionaries of up to 1 MiB.
    """
    rng, n_columns = np.random.default_rng(0), 200
    names, sizes = [f"x{number}" for number in range(n_columns)], []
    for number, n_samples in enumerate(numbers):
        X = pd.DataFrame(rng.normal(size=(n_samples, n_columns)).astype(np.float32), columns=names)
        X["y"] = X["x0"] + rng.normal(size=n_samples) > 0
        (tmp_path / f"{number}.{suffix}").write_bytes(content_of(X.round(3), suffix))
        sizes.append(8 * n_samples * n_columns)
    skops.io.dump(LogisticRegression().fit(X[names][:500], X["y"][:500]), tmp_path / "model.skops")
    commands = (
        ("evaluate", "model.skops", "DATA"),
        ("compare", "model.skops", "model.skops", "DATA", "--resamples", "2"),
        ("predict", "model.skops", "DATA", "--out", "predictions.csv", "--force"),
        ("adapt", "model.skops", "DATA", "--max-samples", "2000", "--candidate", "refit"),
    )
    given = [
        [*(f"{number}.{suffix}" if word == "DATA" else word for word in command), "--label", "y"]
        for command in commands
        for number in (0, 1)
    ]
    peaks = peaks_of(tmp_path, given)
    for command, small, large in zip(commands, peaks[::2], peaks[1::2], strict=True):
        growth = (large - small) / (sizes[1] - sizes[0])
        assert growth < 0.6, f"{command[0]}: {small / 2**20:.0f}, {large / 2**20:.0f} MiB"
