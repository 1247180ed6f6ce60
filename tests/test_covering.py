"""The cases that ``make test`` runs."""

from collections import Counter
from itertools import product

import pytest

from tests.covering import covering, spread


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (4, 1, 2), (2, 2, 2, 2)], ids=str)
def test_each_value_of_each_parameter_is_covered(sizes):
    values = list(product(*[[f"{axis}{i}" for i in range(n)] for axis, n in enumerate(sizes)]))
    kept = covering(range(len(values)), values)
    assert [{values[i][axis] for i in kept} for axis in range(len(sizes))] == [
        {v[axis] for v in values} for axis in range(len(sizes))
    ]
    assert len(kept) == max(sizes)


def test_equal_values_of_two_parameters_are_distinct():
    assert covering("abcd", [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]) == ["a", "d"]


def test_values_occur_equally_often():
    values = [(f"{i}", f"{j}") for i in range(12) for j in range(4)]
    for times in (1, 2, 3):
        kept = covering(values, values, times)
        assert Counter(i for i, _ in kept) == dict.fromkeys(map(str, range(12)), times)
        assert Counter(j for _, j in kept) == dict.fromkeys(map(str, range(4)), 3 * times)
    assert covering(values, values, 5) == values


def test_all_cases_of_rare_values_are_kept():
    values = [("a", "0"), ("a", "1"), ("a", "2"), ("b", "2")]
    assert covering(values, values, 2) == values


@pytest.mark.parametrize(
    "n, kept", [(1, [0]), (3, [0, 2, 4]), (6, [0, 1, 2, 3, 4, 5]), (9, [0, 1, 2, 3, 4, 5])]
)
def test_spread(n, kept):
    assert spread(range(6), n) == kept


@pytest.mark.sweep(2)
@pytest.mark.parametrize("value", range(5))
def test_marks_of_a_sweep(request, value):
    assert (request.node.get_closest_marker("slow") is None) == (value in (0, 2)), value


@pytest.mark.sweep(2, slow=1)
@pytest.mark.parametrize("value", range(6))
def test_marks_of_a_long_sweep(request, value):
    marks = [mark for mark in ("slow", "rest") if request.node.get_closest_marker(mark)]
    assert marks == {0: [], 3: [], 1: ["slow"]}.get(value, ["rest"])


@pytest.mark.sweep(2)
@pytest.mark.parametrize("pair", [f"{i}|{j}" for i in "abcd" for j in "xy"])
def test_marks_of_pairs(request, pair):
    marks = [mark for mark in ("slow", "rest") if request.node.get_closest_marker(mark)]
    expected = {"a|x": [], "c|x": [], "b|y": ["slow"], "d|y": ["slow"]}
    assert marks == expected.get(pair, ["rest"])
