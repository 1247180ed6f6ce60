"""A pairwise table contains every pair of levels, in few rows."""

from itertools import combinations, product
from math import prod

import pytest

from tests.pairwise import covering_rows, pairwise


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3), (4, 3, 2), (6, 5, 4, 3, 3, 2, 2), (3,) * 10])
def test_every_pair_occurs(sizes):
    rows = covering_rows(sizes)
    for i, j in combinations(range(len(sizes)), 2):
        assert {(row[i], row[j]) for row in rows} == set(product(range(sizes[i]), range(sizes[j])))
    assert rows == covering_rows(sizes) and len(set(rows)) == len(rows)
    two = sorted(sizes)[-2:]
    assert prod(two) <= len(rows) <= 2 * prod(two) + len(sizes)


def test_parametrized_rows():
    ort = pytest.param("ort", marks=pytest.mark.slow)
    mark = pairwise(indirect=["b"], a=["x", "y"], b=[1, 2], c=["rules", ort])
    names, rows = mark.args
    assert (names, mark.kwargs["indirect"]) == ("a,b,c", ["b"])
    assert [row.values for row in rows] == [
        ("x", 1, "rules"),
        ("x", 2, "ort"),
        ("y", 1, "ort"),
        ("y", 2, "rules"),
    ]
    assert [row.id for row in rows][0] == "x-1-rules"
    assert [bool(row.marks) for row in rows] == [False, True, True, False]
