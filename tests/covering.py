"""Choice of the cases of parametrised tests that ``make test`` runs; ``make test-slow`` runs the rest."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")
#: Tests with these marks have a command of their own, which runs all cases.
OWN_COMMAND = ("slow", "runtimes", "openvino", "gpu")


def mark_rest(items: Iterable[pytest.Item]) -> None:
    """Mark the cases with ``rest`` that are neither covering nor chosen by ``sweep``."""
    functions = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not any(map(item.get_closest_marker, OWN_COMMAND)):
            functions[item.path, item.parent.nodeid, item.originalname].append(item)
    for cases in functions.values():
        kept = covering(cases, [item.callspec._idlist for item in cases])
        sweep = cases[0].get_closest_marker("sweep")
        if sweep is not None:
            kept = spread(kept, *sweep.args)
        for item in set(cases).difference(kept):
            item.add_marker("rest")


def covering(cases: Sequence[T], values: Sequence[Sequence[str]]) -> list[T]:
    """Return cases in which each value of each parameter occurs; all cases of a single parameter."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for case, named in zip(cases, values, strict=True):
        new = set(enumerate(named)) - seen
        if new or not named:
            kept.append(case)
            seen |= new
    return kept


def spread(cases: Sequence[T], n: int) -> list[T]:
    """Return n of the cases at equal distances, or all if there are no more."""
    n = min(n, len(cases))
    return [cases[i * len(cases) // n] for i in range(n)]
