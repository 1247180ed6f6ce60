"""What a run says as a whole: counts, targets, and a page for the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .case import KINDS, Case
from .cases import NO_CASE, estimator_classes
from .verdict import converts, crashed, has_learned, is_trained, reason, silently_wrong, state

__all__ = ["Summary", "TARGETS", "page"]

#: Estimators that must train with a correct gradient, by backend.
TARGETS = {"rules": 116, "ort": 111}


class Summary:
    """Counts of a run.

    Parameters
    ----------
    cases : mapping of str to Case
        What was measured.
    results : mapping of str to facts
        What was found.
    """

    def __init__(self, cases: Mapping[str, Case], results: Mapping[str, Mapping[str, Any]]):
        self.cases = {name: cases[name] for name in results}
        self.results = results
        #: Facts of the main case of each estimator.
        self.main = {case.estimator: results[name] for name, case in self.cases.items() if case.main}

    def counts(self) -> list[tuple[str, int, int]]:
        """Return what was counted, of estimators (their main cases) and of all cases."""

        def count(test) -> tuple[int, int]:
            return sum(map(test, self.main.values())), sum(map(test, self.results.values()))

        def holds(name: str):
            return lambda facts: bool(facts.get(name, {}).get("ok"))

        rows = [
            ("measured", lambda facts: True),
            ("convert to ONNX", converts),
            ("have learned parameters in the graph", has_learned),
            ("can be trained", holds("poses")),
            ("correct gradient by our rules", holds("gradient_rules")),
            ("correct gradient by onnxruntime-training", holds("gradient_ort")),
            ("trained by our rules, the loss falls", lambda f: is_trained(f, "rules")),
            ("trained by onnxruntime-training, the loss falls", lambda f: is_trained(f, "ort")),
            ("predict as the exported file", holds("exported")),
            ("silently wrong", lambda f: bool(silently_wrong(f))),
            ("crash or endless", lambda f: crashed(f) is not None),
        ]
        return [(name, *count(test)) for name, test in rows]

    def text(self) -> str:
        """Return the counts as a table for the terminal."""
        return "\n".join(
            f"{name:50} {main:4} estimators {total:4} cases" for name, main, total in self.counts()
        )

    def missed(self) -> list[str]:
        """Return what is missing from the targets, one sentence each."""
        found = []
        for name, facts in self.results.items():
            if crashed(facts):
                found.append(f"{name} crashed at {crashed(facts)}.")
            if silently_wrong(facts):
                found.append(f"{name} is silently wrong: {reason(facts)}")
        for backend, target in TARGETS.items():
            trained = sum(is_trained(facts, backend) for facts in self.main.values())
            if trained < target:
                found.append(f"{trained} estimators train by {backend!r}, the target is {target}.")
        return found


_INTRODUCTION = """\
Written by `make coverage`, which measures every estimator of scikit-learn: whether it converts, what was
learned, whether the gradient is correct against finite differences in float64 (the weights moved away from
where scikit-learn left them), whether the loss falls in a short warm fit, and whether our estimator predicts
as the file it exports. An estimator counts by its main case. *trained* means with a correct gradient by our
rules and by onnxruntime-training; *trained by rules* by ours alone.""".splitlines()


def page(summary: Summary) -> str:
    """Return the page of the documentation."""
    lines = [
        "# Which models train",
        "",
        *_INTRODUCTION,
        "",
        "| | estimators | cases |",
        "|---|---|---|",
        *(f"| {name} | {main} | {total} |" for name, main, total in summary.counts()),
    ]
    for kind in KINDS:
        rows = [(n, summary.results[n]) for n, case in summary.cases.items() if case.kind == kind]
        if rows:
            lines += ["", f"## {_TITLES[kind]}", "", "| case | | what stands in the way |", "|---|---|---|"]
            lines += [f"| {name} | {state(facts)} | {_cell(reason(facts))} |" for name, facts in rows]
    lines += ["", "## Not measured", "", "| estimator | why |", "|---|---|"]
    lines += [f"| {name} | {why} |" for name, why in NO_CASE.items() if name in estimator_classes()]
    return "\n".join(lines) + "\n"


_TITLES = {
    "classifier": "Classifiers",
    "regressor": "Regressors",
    "clusterer": "Clusterers",
    "density": "Densities",
    "outliers": "Outlier detectors",
    "transformer": "Transformers",
    "other": "Others",
    "pipeline": "Pipelines",
}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:300]
