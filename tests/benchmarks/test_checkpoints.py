"""The benchmark of checkpoints runs, and its share of the time is below the documented limit."""

import pytest

from benchmarks.bench_checkpoints import main, measure


@pytest.mark.needs_callbacks
def test_share_of_time():
    found = measure(n_samples=300, max_iter=2, width=4, repeats=1)
    assert 0 < found["file_seconds"] and found["share_of_time"] <= 0.02


@pytest.mark.needs_callbacks
def test_output(capsys):
    main(["--samples", "200", "--epochs", "1", "--width", "3", "--repeats", "1"])
    assert "with a ModelCheckpoint" in capsys.readouterr().out
