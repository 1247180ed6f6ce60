"""Measurements on a Dask cluster and their tables."""

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

pytest.importorskip("distributed")
from benchmarks import bench_dask as bench  # noqa: E402
from benchmarks.shards import cluster  # noqa: E402


@pytest.fixture(scope="module")
def client():
    from tests.distributed.conftest import cluster_of

    with cluster_of(2, processes=False) as client:
        yield client


def test_round_returns_the_mean_of_its_shards(client):
    found = cluster.round_of(client, {"weights": np.array([1.0, 2.0], np.float32)}, 3)
    np.testing.assert_allclose(found["weights"], [2.0, 3.0])


def test_first_pass_is_not_timed(client):
    seconds = cluster.seconds_of_passes(client, 600, 3)
    assert len(seconds) == 2 and all(0 < value < 60 for value in seconds)


def test_fastest_call():
    calls = []
    times = iter([0.0, 5.0, 10.0, 12.0, 20.0, 24.0, 30.0, 31.0])
    assert (
        cluster.fastest(lambda: calls.append(1), 9, lambda: next(times)) == 2.0
    )  # 5, 2 and 4 seconds are enough
    assert len(calls) == 4


def test_n_weights():
    X, y = cluster.samples(30, 12, 0)
    network = MLPClassifier((7, 3)).partial_fit(X, y, classes=[0, 1])
    expected = sum(array.size for array in network.coefs_ + network.intercepts_)
    assert cluster.n_weights(12, (7, 3)) == expected and cluster.n_weights(12, ()) == 13


@pytest.mark.parametrize(
    ("seconds", "text"), [(1e-4, "0.1 ms"), (1.9, "1,900 ms"), (30, "30 s"), (300, "5 min"), (9000, "2.5 h")]
)
def test_time_text(seconds, text):
    assert bench.time_text(seconds) == text


def test_tables():
    rounds = [(c, s, 0.004 + c * (0.0005 + s * 2e-9)) for s in (1000, 10_000_000) for c in (2, 8)]
    rows = [(c, w, 1e-6 + 2e-9 * c + 3e-11 * w) for c, w in ((10, 11), (1000, 1001), (100, 1e4), (100, 1e6))]
    times = cluster.Times(rounds, [2.0, 2.2, 1.9], [1.0, 1.1, 1.0], rows, 0.5)
    text = bench.page_part(times, "2026-01-01")
    assert "| 1,000 | 5 | 8.02 |" in text and "| 10,000,000 | 45 | 168 |" in text
    assert "a ratio of **1.90**, of" in text and "are 1.90 to 2.00." in text
    assert "load average 0.5 before it" in text and bench.costs_of(times).efficiency == pytest.approx(0.95)
    assert "A sum of 4.00 ms, 0.50 ms for each shard and 2.00 ms for each megabyte" in text
    lines = [line for line in text.splitlines() if "shards; effect of a pass |" in line]
    assert len(lines) == 5 and "| 2 | " not in "".join(lines)


def test_two_processes_are_not_compared_on_a_busy_machine():
    rounds, rows = [(2, 1000, 0.1), (4, 1000, 0.2)], [(1, 1, 1e-6), (2, 5, 2e-6)]
    busy = cluster.Times(rounds, [2.0], [2.1], rows, 7.0)
    assert bench.costs_of(busy).efficiency == 1.0
    assert "not compared" in bench.ratio_text(busy) and "**" not in bench.page_part(busy, "")
