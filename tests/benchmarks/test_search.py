"""The benchmark of searches that train candidates together."""

from dataclasses import replace

import pytest

from benchmarks import bench_search


@pytest.mark.slow
def test_both_searches_have_the_same_results():
    for case in bench_search.CASES[:2]:
        small = replace(case, n_samples=60, features=4)
        found = bench_search.measure(small, {"learning_rate__eta0": [0.01, 0.1]}, 1, max_iter=2)
        assert found.alone > 0 and found.together > 0 and found.difference < 1e-5
        assert found.ratio == found.together / found.alone


@pytest.mark.slow
def test_both_halvings_have_the_same_best_candidate():
    _, sheet = bench_search.sheets(quick=True)
    assert [row[-1] for row in sheet.rows] == ["yes"]
