"""Cases of parametrised tests that ``make test``, ``make test-slow`` and ``make test-rest`` run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")
#: Tests with these marks have a command of their own, which runs all cases.
OWN_COMMAND = ("runtimes", "openvino", "gpu")


def mark_cases(items: Iterable[pytest.Item]) -> None:
    """Mark cases of ``make test-slow`` with ``slow``, and those of ``make test-rest`` with ``rest``."""
    functions = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not any(map(item.get_closest_marker, OWN_COMMAND)):
            is_slow = item.get_closest_marker("slow") is not None
            functions[item.path, item.parent.nodeid, item.originalname, is_slow].append(item)
    for (*_, is_slow), cases in functions.items():
        sweep = cases[0].get_closest_marker("sweep")
        n, times = (sweep.args[0], sweep.kwargs.get("times", 1)) if sweep else (len(cases), 1)
        most = sweep.kwargs.get("slow", len(cases)) if sweep else len(cases)
        # An id with a bar names two values.
        values = [[name for part in item.callspec._idlist for name in part.split("|")] for item in cases]
        kept = covering(cases, values, times)
        quick = [] if is_slow else spread(kept, n)
        others = [item for item in kept if item not in quick]
        kept = [*quick, *spread(others, most)]
        for item in set(cases).difference(kept):
            item.add_marker("rest")
        for item in set(kept).difference(quick):
            item.add_marker("slow")


def covering(cases: Sequence[T], values: Sequence[Sequence[str]], times: int = 1) -> list[T]:
    """Return cases in which each value of each parameter occurs ``times`` times, or as often as it can."""
    having = defaultdict(list)
    for i, named in enumerate(values):
        for value in enumerate(named):
            having[value].append(i)
    parameters = sorted(having, key=lambda value: -sum(axis == value[0] for axis, _ in having))
    used: Counter[tuple[int, str]] = Counter()
    kept = {i for i, named in enumerate(values) if not named}

    def uses(i: int) -> tuple[int, int]:
        counts = [used[value] for value in enumerate(values[i])]
        return sum(counts), i

    for turn in range(times):
        for value in parameters:
            left = [i for i in having[value] if i not in kept]
            if used[value] <= turn and left:
                chosen = min(left, key=uses)
                kept.add(chosen)
                used.update(enumerate(values[chosen]))
    return [cases[i] for i in sorted(kept)]


def spread(cases: Sequence[T], n: int) -> list[T]:
    """Return n of the cases at equal distances, or all if there are no more."""
    n = min(n, len(cases))
    return [cases[i * len(cases) // n] for i in range(n)]
