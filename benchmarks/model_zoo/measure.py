"""Measurement of a case."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.model_zoo.case import Case
from benchmarks.model_zoo.measurement import Fact, Measurement, first_line, if_explained
from benchmarks.model_zoo.verdict import RESULTS

__all__ = ["FACTS", "measure"]

#: Facts, in the order they are found out.
FACTS = ("fits", "converts", "learned", "prepares", *RESULTS)
#: What a fact builds on: without these it is not asked for.
_NEEDS = {
    "converts": ("fits",),
    "learned": ("converts",),
    "prepares": ("fits",),
    "gradient_rules": ("prepares",),
    "gradient_ort": ("prepares",),
    "forward": ("prepares",),
    "decreases_rules": ("gradient_rules",),
    "decreases_ort": ("gradient_ort",),
    "two_calls": ("decreases_rules",),
    "exported": ("prepares",),
    "written": ("prepares",),
    "defaults": ("fits",),
}


def _silent(name: str, fact: Fact | None) -> None:
    pass


def measure(case: Case, announce: Callable[[str, Fact | None], None] = _silent) -> dict[str, Fact]:
    """Return the facts of a case by name, without those that others rule out.

    Parameters
    ----------
    case : Case
        What to measure.
    announce : callable
        Called with the name of a fact and None before, and with the fact after it was found out.
    """
    measurement = Measurement(case)
    facts: dict[str, Fact] = {}
    for name in FACTS:
        if not all(facts.get(needed, {}).get("ok") for needed in _NEEDS.get(name, ())):
            continue
        announce(name, None)
        try:
            facts[name] = getattr(measurement, name)()
        except Exception as error:
            facts[name] = {"ok": False, "reason": first_line(error), **if_explained(error)}
        announce(name, facts[name])
    return facts
