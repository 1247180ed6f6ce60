"""The catalogue: every case by name."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from benchmarks.model_zoo.case import Case
from benchmarks.model_zoo.cases_all import NO_CASE, cases_of_all, estimator_classes
from benchmarks.model_zoo.cases_frames import cases_of_frames
from benchmarks.model_zoo.cases_pipelines import cases_of_pipelines
from benchmarks.model_zoo.cases_variants import cases_of_variants

__all__ = ["NO_CASE", "catalogue", "choose", "estimator_classes"]


def catalogue() -> dict[str, Case]:
    """Return every case by name.

    Raises
    ------
    ValueError
        If two cases have one name.
    """
    cases: dict[str, Case] = {}
    for case in (*cases_of_all(), *cases_of_variants(), *cases_of_pipelines(), *cases_of_frames()):
        if case.name in cases:
            raise ValueError(f"Two cases are called {case.name!r}.")
        cases[case.name] = case
    return cases


def choose(cases: dict[str, Case], patterns: Iterable[str]) -> list[Case]:
    """Return the cases whose name or estimator matches one of the patterns; all cases without patterns."""
    patterns = list(patterns)
    return [
        case
        for case in cases.values()
        if not patterns or any(fnmatchcase(case.name, p) or fnmatchcase(case.estimator, p) for p in patterns)
    ]
