"""Pairwise test tables: every pair of levels of two factors occurs, instead of the full product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest

__all__ = ["covering_rows", "pairwise"]


def covering_rows(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return rows of level numbers that contain every pair of levels of two factors.

    Parameters
    ----------
    sizes : sequence of int
        Number of levels of each of at least two factors.

    Returns
    -------
    list of tuple of int
        Rows, the same in every process. Each begins with an uncovered pair; each further factor takes the
        level that covers most of the remaining pairs.
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
    """Parametrize a test by a table in which every pair of levels occurs.

    Parameters
    ----------
    indirect : sequence of str, default=()
        Factors that are parameters of fixtures.
    **factors : iterable
        Levels of each argument of the test: values or ``pytest.param`` with marks.

    Returns
    -------
    pytest.MarkDecorator
        Result of ``pytest.mark.parametrize``.
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
