"""Folders and patterns of data files, and trainings that read them in parts."""

import numpy as np
import pandas as pd
import pytest

from ortlearn.evaluation.frames import frame_parts, read_frame
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
    parts = list(frame_parts(str(folder), ",", (), size=25))
    assert [len(part) for part in parts] == [25, 25, 10, 25, 25, 25, 25, 18]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), wine_frame())


def test_pattern(folder):
    assert len(read_frame(str(folder / "**" / "*.parquet"), ",", ())) == len(wine_frame()) - 60
    assert len(read_frame(str(folder / "[ab].*"), ",", ())) == 110


def test_commands_take_folders(folder, run, tmp_path):
    whole = run("evaluate", "wine.skops", "wine.csv", "--label", "kind", "--json").result
    of_folder = run("evaluate", "wine.skops", folder, "--label", "kind", "--json").result
    assert of_folder["scores"] == whole["scores"]


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

    assert "No .csv, .csv.gz or .parquet file in this pattern" in error(str(folder / "*.pq"))
    assert "data must be a .csv" in error(str(folder / "_SUC*"))
    wine_frame()[FEATURES].to_csv(folder / "d.csv", index=False)
    assert "d.csv has the columns" in error(folder) and "all files need the same columns" in error(folder)
    frame = wine_frame()
    frame.loc[3, "kind"] = np.nan
    frame.to_csv(folder / "d.csv", index=False)
    assert "has no label in 1 of" in error(folder)
