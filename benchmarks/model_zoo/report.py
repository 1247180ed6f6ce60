"""Counts and targets of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.model_zoo.case import Case
from benchmarks.model_zoo.verdict import converts, crashed, has_learned, is_trained, reason, silently_wrong

__all__ = ["Summary", "TARGETS"]

#: Minimum numbers of estimators that train with a correct gradient, by backend.
TARGETS = {"rules": 150, "ort": 120}


Facts = Mapping[str, Mapping[str, Any]]
Test = Callable[[Facts], bool]


def _holds(name: str) -> Test:
    return lambda facts: bool(facts.get(name, {}).get("ok"))


_TRAINED = {
    "rules": "trained by the rules of ortlearn, with a decreasing loss",
    "ort": "trained by onnxruntime-training, with a decreasing loss",
}
#: Counted properties.
_TESTS: dict[str, Test] = {
    "measured": lambda facts: True,
    "convert to ONNX": converts,
    "have learned parameters": has_learned,
    "correct gradient by the rules of ortlearn": _holds("gradient_rules"),
    "correct gradient by onnxruntime-training": _holds("gradient_ort"),
    _TRAINED["rules"]: lambda facts: is_trained(facts, "rules"),
    _TRAINED["ort"]: lambda facts: is_trained(facts, "ort"),
    "predict like the exported file": _holds("exported"),
    "are written back by to_sklearn": _holds("written"),
    "trained with default parameters": _holds("defaults"),
    "silently wrong": lambda facts: bool(silently_wrong(facts)),
    "crash or do not terminate": lambda facts: crashed(facts) is not None,
}


class Summary:
    """Counts of a run.

    Parameters
    ----------
    cases : mapping of str to Case
        Measured cases by name.
    results : mapping of str to facts
        Results by name.
    """

    def __init__(self, cases: Mapping[str, Case], results: Mapping[str, Mapping[str, Any]]):
        self.cases = {name: cases[name] for name in results}
        self.results = results
        #: Facts of the main case of each estimator.
        self.main = {case.estimator: results[name] for name, case in self.cases.items() if case.main}

    def counts(self) -> list[tuple[str, int, int, int]]:
        """Return the counts: estimators by main case, estimators by any case, and cases."""

        def count(test: Test) -> tuple[int, int, int]:
            cases = [name for name, facts in self.results.items() if test(facts)]
            estimators = {self.cases[n].estimator for n in cases if self.cases[n].kind != "pipeline"}
            return sum(map(test, self.main.values())), len(estimators), len(cases)

        return [(name, *count(test)) for name, test in _TESTS.items()]

    def text(self) -> str:
        """Return the counts as a table for the terminal."""
        titles = f"{'':50} {'main case':>12} {'any case':>12} {'cases':>8}"
        rows = [f"{name:50} {main:12} {some:12} {total:8}" for name, main, some, total in self.counts()]
        return "\n".join([titles, *rows])

    def missed(self) -> list[str]:
        """Return a sentence for each missed target."""
        found = []
        for name, facts in self.results.items():
            if crashed(facts):
                found.append(f"{name} crashed at {crashed(facts)}.")
            if silently_wrong(facts):
                found.append(f"{name} is silently wrong: {reason(facts)}")
        counted = {name: some for name, _, some, _ in self.counts()}
        for backend, target in TARGETS.items():
            trained = counted[_TRAINED[backend]]
            if trained < target:
                found.append(f"{trained} estimators train by {backend!r}, the target is {target}.")
        return found
