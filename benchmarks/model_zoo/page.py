"""docs/coverage.md, with a row for each limitation of estimators, and docs/coverage.csv with all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.model_zoo.case import KINDS
from benchmarks.model_zoo.cases import NO_CASE, estimator_classes
from benchmarks.model_zoo.report import Summary
from benchmarks.model_zoo.verdict import converts, is_trained, state

__all__ = ["TITLES", "page", "rows"]

_INTRODUCTION = """\
# Model coverage

Which estimators of scikit-learn are trained, and their limitations; [a file](coverage.csv) has the trained
attributes of each. Estimators are counted by their main case, which is close to the defaults, and by any of
their cases: other losses, kernels or labels. [Method](#method) defines the checks of a case.
"""
_HOW = """\
## Method

`make coverage` checks each case on small data, and writes this page and the file:

- the estimator converts to ONNX, and has learned parameters;
- the gradient equals finite differences in float64, at weights other than those that scikit-learn fitted;
- the loss decreases in a short fit with a warm start;
- the trained estimator predicts like the exported file, and predicts and scores like the scikit-learn model
  of `to_sklearn()`.

The main case is also trained with default parameters only, from fresh weights and with a warm start, by one
of the two training classes each. Copies by pickle, the exported file and `to_sklearn()` must predict alike.
"""
#: Columns of the file.
TITLES = ("kind", "model", "cases", "trained", "written by to_sklearn", "trained attributes", "limitations")
_KINDS = {
    "classifier": "Classifiers",
    "regressor": "Regressors",
    "clusterer": "Clusterers",
    "density": "Density estimators",
    "outliers": "Outlier detectors",
    "transformer": "Transformers",
    "other": "Other estimators",
    "pipeline": "Pipelines and meta-estimators",
}
_LONGEST = 260
#: Prefixes of reasons, by the fact that they explain.
_PREFIXES = {
    "written": "to_sklearn: ",
    **dict.fromkeys(("gradient_ort", "decreases_ort"), "onnxruntime-training: "),
}
_CONVERTER = re.compile(r"(has a step that skl2onnx does not convert|Unable to find a (shape|converter))")

Facts = Mapping[str, Mapping[str, Any]]


def page(summary: Summary) -> str:
    """Return the page, in Markdown."""
    lines = [_INTRODUCTION, "| | estimators, main case | estimators, any case | cases |", "|---|---|---|---|"]
    lines += [f"| {name} | {main} | {some} | {total} |" for name, main, some, total in summary.counts()]
    found = list(rows(summary))
    for kind in KINDS:
        of_kind = [row for row in found if row[0] == kind]
        if of_kind:
            lines += ["", f"## {_KINDS[kind]}", "", *_section(of_kind)]
    lines += ["", "## Not converted", "", _not_converted(summary)]
    lines += ["", "## Not measured", "", "| estimators | reason |", "|---|---|"]
    known = [pair for pair in NO_CASE.items() if pair[0] in estimator_classes()]
    lines += [f"| {', '.join(names)} | {why} |" for why, names in _by_last(known)]
    lines += ["", _HOW]
    return "\n".join(lines)


def _groups(summary: Summary, kind: str) -> dict[str, dict[str, Facts]]:
    """Return the cases of a kind by model, then by variant."""
    groups: dict[str, dict[str, Facts]] = {}
    for name, case in summary.cases.items():
        if case.kind == kind:
            groups.setdefault(case.estimator, {})[name.partition(":")[2]] = summary.results[name]
    return groups


def rows(summary: Summary) -> Iterator[list[str]]:
    """Yield a row of the file for each estimator that converts to ONNX."""
    for kind in KINDS:
        for model, variants in sorted(_groups(summary, kind).items()):
            if any(converts(facts) for facts in variants.values()):
                trained = sum(is_trained(facts, "rules") for facts in variants.values())
                written = sum(bool(facts.get("written", {}).get("ok")) for facts in variants.values())
                counts = [str(len(variants)), str(trained), str(written)]
                yield [kind, model, *counts, _origins(variants), _remarks(variants)]


def _section(found: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of estimators without limitations, and a table of the others."""
    complete = [row for row in found if row[2] == row[3] == row[4] and not row[6]]
    limited = [row for row in found if row not in complete]
    names = ", ".join(row[1] for row in complete)
    if complete and complete[0][0] == "pipeline":
        names = f"the {len(complete)} of [the file](coverage.csv)"
    lines = [f"Trained in all of their cases: {names}."] if complete else []
    if complete and limited:
        lines.append("")
    if limited:
        lines += ["| models | cases | trained | by to_sklearn | limitations |", "|---|---|---|---|---|"]
        for remark, same in _by_last([row[1:5], row[6]] for row in limited):
            names, *counts = zip(*same, strict=True)
            sums = [str(sum(map(int, count))) for count in counts]
            lines.append(f"| {' | '.join([', '.join(names), *sums, _cell(remark)])} |")
    return lines


def _by_last(pairs: Iterable[Sequence[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each second part, in the order of its first occurrence, with the first parts that have it."""
    groups: dict[str, list[Any]] = {}
    for value, key in pairs:
        groups.setdefault(key, []).append(value)
    yield from groups.items()


def _origins(variants: Mapping[str, Facts]) -> str:
    """Return the attributes that are trained in any of the cases."""
    found = dict.fromkeys(
        re.sub(r"\[[^\]]*\]", "[*]", origin)
        for facts in variants.values()
        for origin in facts.get("decreases_rules", {}).get("origins", ())
        if origin
    )
    return ", ".join(found)


def _remarks(variants: Mapping[str, Facts]) -> str:
    """Return the reasons why cases are not trained by a backend, with the variants of each reason."""
    reasons: dict[str, list[str]] = {}
    for variant, facts in variants.items():
        remark = _remark(facts)
        if remark:
            reasons.setdefault(remark, []).append(variant)
    every = len(reasons) == 1 and len(next(iter(reasons.values()))) == len(variants)
    return "; ".join(
        reason if every else f"{', '.join(names)}: {reason}" for reason, names in reasons.items()
    )


def _remark(facts: Facts) -> str:
    if not converts(facts) and not _CONVERTER.search(_reason(facts, "prepares") + _reason(facts, "converts")):
        return _reason(facts, "prepares") or _reason(facts, "converts") or _reason(facts, "fits")
    if not converts(facts):
        return "skl2onnx has no converter"
    if facts.get("prepares", {}).get("explained"):
        return str(facts["prepares"]["explained"])
    order = (
        "prepares",
        "gradient_rules",
        "decreases_rules",
        "exported",
        "forward",
        "gradient_ort",
        "decreases_ort",
        "written",
    )
    found = next(
        (name for name in order if facts.get(name, {}).get("ok") is False and not _is_refusal(facts, name)),
        None,
    )
    if found is None:
        return ""
    return f"{_PREFIXES.get(found, '')}{_reason(facts, found)}"


def _is_refusal(facts: Facts, name: str) -> bool:
    """Return whether onnxruntime-training is not used for a model, which is no limitation of its training."""
    return name.endswith("_ort") and "plain" in facts[name]


def _reason(facts: Facts, name: str) -> str:
    """Return the reason of a fact without the class of its error."""
    return re.sub(
        r"^\w+(Error|Fail|Implemented|Argument): ", "", str(facts.get(name, {}).get("reason") or "")
    )


def _not_converted(summary: Summary) -> str:
    some = {case.estimator for name, case in summary.cases.items() if converts(summary.results[name])}
    kinds = [kind for kind in KINDS if kind != "pipeline"]
    names = {case.estimator for case in summary.cases.values() if case.kind in kinds}
    lost = {name for name in names - some if state(summary.main.get(name, {})) != "crash"}
    return "skl2onnx has no converter for " + ", ".join(sorted(lost)) + "."


def _cell(text: str) -> str:
    text = text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} ..."
