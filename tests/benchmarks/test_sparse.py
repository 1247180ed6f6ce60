"""The benchmark against SGDClassifier on sparse data."""

import sys

import numpy as np
import pytest

from benchmarks import bench_sparse as bench


def test_generated_samples():
    text, one_hot = bench.text_samples(500, 2000), bench.one_hot_samples(500, 5, 40)
    lengths = np.diff(text.indptr)
    assert text.shape == (500, 2000) and 40 < lengths.mean() < 80 and lengths.max() > 2 * lengths.mean()
    assert one_hot.shape == (500, 200) and set(np.diff(one_hot.indptr)) == {5}
    assert (one_hot.toarray().reshape(500, 5, 40).sum(axis=2) == 1).all()
    for n_classes in (2, 7):
        assert (
            np.bincount(bench.labels_of(text, n_classes), minlength=n_classes).min() > 500 // n_classes - 10
        )


def test_times(monkeypatch):
    monkeypatch.setitem(bench.CASES, "few", (lambda: bench.text_samples(600, 3000), 2, "Adam"))
    *times, chunked, whole = (float(cell) for cell in bench.measure_time("few", 1).split("|"))
    assert len(times) == 3 and chunked >= 0 and whole >= 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory(monkeypatch):
    monkeypatch.setitem(bench.CASES, "few", (lambda n=3000: bench.text_samples(n, 3000), 2, "SGD"))
    size, added, ratio = (float(cell) for cell in bench.measure_memory("few").split("|"))
    assert size > 1 and added >= 0
    np.testing.assert_allclose(ratio, 1 + added / size, atol=0.2)  # printed with one decimal
