"""The benchmark of checkpoints runs, and its shares are below what the documentation says."""

import pytest

from benchmarks.bench_checkpoints import main, measure


@pytest.mark.needs_callbacks
def test_it_measures():
    found = measure(n_samples=300, max_iter=2, width=4, repeats=1)
    assert 0 < found["file_seconds"] and found["share_of_time"] <= 0.02


@pytest.mark.needs_callbacks
def test_it_prints(capsys):
    main(["--samples", "200", "--epochs", "1", "--width", "3", "--repeats", "1"])
    assert "with a ModelCheckpoint" in capsys.readouterr().out
