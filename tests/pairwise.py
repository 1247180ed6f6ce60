"""Tables of settings in which every two levels of two factors meet, instead of the product of all factors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest

__all__ = ["covering_rows", "pairwise"]


def covering_rows(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return rows of level numbers that hold every pair of levels of two factors at least once.

    Parameters
    ----------
    sizes : sequence of int
        Number of levels of each factor; two factors or more.

    Returns
    -------
    list of tuple of int
        Rows, the same in every process. Each one is begun with a pair that is not covered, and
        completed, factor by factor, with the level that covers most of the others.
    """
    left = {
        ((i, a), (j, b))
        for i, j in combinations(range(len(sizes)), 2)
        for a, b in product(range(sizes[i]), range(sizes[j]))
    }
    rows = []
    while left:
        row = dict(min(left))
        for factor in range(len(sizes)):
            if factor not in row:
                gains = [sum(_pair((factor, level), other) in left for other in row.items())
                         for level in range(sizes[factor])]  # fmt: skip
                row[factor] = gains.index(max(gains))
        left.difference_update(combinations(sorted(row.items()), 2))
        rows.append(tuple(row[factor] for factor in range(len(sizes))))
    return rows


def _pair(one, other):
    return (one, other) if one < other else (other, one)


def pairwise(*, indirect: Sequence[str] = (), **factors: Iterable[Any]) -> pytest.MarkDecorator:
    """Return the mark that runs a test on a table in which every pair of levels occurs.

    Parameters
    ----------
    indirect : sequence of str, default=()
        Factors that are the parameter of a fixture.
    **factors : iterable
        Levels of each argument of the test: values, or ``pytest.param`` with marks.

    Returns
    -------
    pytest.MarkDecorator
        A ``pytest.mark.parametrize``.
    """
    levels = [[_as_param(level) for level in factor] for factor in factors.values()]
    rows = []
    for numbers in covering_rows([len(factor) for factor in levels]):
        row = [factor[number] for factor, number in zip(levels, numbers, strict=True)]
        rows.append(
            pytest.param(
                *(param.values[0] for param in row),
                id="-".join(param.id for param in row),
                marks=[mark for param in row for mark in param.marks],
            )
        )
    return pytest.mark.parametrize(",".join(factors), rows, indirect=list(indirect))


def _as_param(level: Any) -> Any:
    known = level if hasattr(level, "marks") and hasattr(level, "values") else pytest.param(level)
    value = known.values[0]
    text = known.id or str(getattr(value, "__name__", value))
    return pytest.param(value, id=text, marks=known.marks)
