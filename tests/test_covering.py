"""The cases that ``make test`` runs."""

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
    assert len(kept) == 1 + sum(n - 1 for n in sizes)


def test_equal_values_of_two_parameters_are_distinct():
    assert covering("abcd", [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "n, kept", [(1, [0]), (3, [0, 2, 4]), (6, [0, 1, 2, 3, 4, 5]), (9, [0, 1, 2, 3, 4, 5])]
)
def test_spread(n, kept):
    assert spread(range(6), n) == kept


@pytest.mark.sweep(2)
@pytest.mark.parametrize("value", range(5))
def test_marks_of_a_sweep(request, value):
    assert (request.node.get_closest_marker("rest") is None) == (value in (0, 2)), value
