"""The benchmark of memory, on which the advice on large data is based."""

import sys

import numpy as np
import pytest

from benchmarks import bench_fit_memory as memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_private_memory_is_measured():
    with memory.Peak() as peak:
        block = np.ones(60 * 2**20, dtype=np.uint8)
        kept = memory.private_memory()
        del block
    assert kept > 60
    assert 50 < peak.added < 120


def test_memory_map_is_not_private(tmp_path):
    memory.write_samples(tmp_path / "samples.npy", 100_000, "float32")
    samples = np.load(tmp_path / "samples.npy", mmap_mode="r")
    assert samples.nbytes > 35 * 2**20
    with memory.Peak() as peak:
        total = float(samples.sum())
    assert np.isfinite(total) and peak.added < 15


@pytest.mark.parametrize("kind", ["map chunks", "map scaler fitted each", "sparse"])
def test_kinds_of_data(kind, tmp_path, capsys):
    assert kind in memory.KINDS.values()
    memory.measure(kind, 2000, str(tmp_path))
    number, unit = capsys.readouterr().out.split()
    assert unit == "MiB" and 0 <= int(number) < 100
