"""The benchmark of training from parquet files."""

import numpy as np
import pytest

from benchmarks import bench_streams as bench

pytest.importorskip("pyarrow")


def test_files_have_the_generated_samples(tmp_path):
    bench.generate(tmp_path, 450, group=100, file=200)
    assert len(list(tmp_path.iterdir())) == 3
    X, y = bench._in_memory(tmp_path)
    parts = [bench.samples_of_group(number, size) for number, size in enumerate([100] * 4 + [50])]
    np.testing.assert_array_equal(X, np.concatenate([part for part, _ in parts]), strict=True)
    np.testing.assert_array_equal(y, np.concatenate([part for _, part in parts]), strict=True)


def test_generated_samples_have_other_offsets():
    (X, y), (other, same), (last, few) = bench.generated(50, group=20)
    assert X.shape == other.shape == (20, bench.N_FEATURES) and len(last) == len(few) == 10
    np.testing.assert_array_equal(y, same)
    offsets = other - X
    assert np.ptp(offsets) < 1e-5 and 0 < abs(offsets.mean()) < 0.1


def test_files_sorted_by_label(tmp_path):
    bench.generate(tmp_path, 300, by_label=True)
    X, y = bench._in_memory(tmp_path)
    assert len(X) == 300 and 0 < y.sum() < 300 and (np.diff(y) >= 0).all()


@pytest.mark.slow
def test_sheet_compares_both_sides():
    (sheet,) = bench.sheets(quick=True)
    assert "20,000 samples" in sheet.text and [row[0] for row in sheet.rows] == [bench.MODELS[0]]
    ratio, memory = sheet.figures.values()
    assert sheet.rows[0][3:] == [f"{1 / ratio:.0%}", f"{memory:.0f} MiB"] and ratio > 0 and memory > 0
    assert len(sheet.header) == len(sheet.rows[0]) and "samples/s" in sheet.markdown()


def test_both_sides_train_the_same_model(tmp_path):
    bench.generate(tmp_path, 3000)  # few enough for the buffer, which keeps their order
    scores = {bench.train(tmp_path, bench.MODELS[0], side, {})["score"] for side in bench.SIDES}
    assert len(scores) == 1 and scores.pop() > 0.55
