"""The page of the documentation: one row for each estimator, in words a user understands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.model_zoo.case import KINDS
from tests.model_zoo.cases import NO_CASE, estimator_classes
from tests.model_zoo.report import Summary
from tests.model_zoo.verdict import converts, is_trained, state

__all__ = ["page"]

_INTRODUCTION = """\
# Which models train

Every estimator of scikit-learn, by what it is for: what is trained of it, and what stands in the way.
An estimator is counted by its main case (its defaults, nearly), and by whether it trains in any of its cases
(other losses, kernels, kinds of labels). [How it is measured](#how-it-is-measured) says what the lines mean.
"""
_HOW = """\
## How it is measured

On small data, one case after the other: whether it converts; what was learned; whether the gradient is right,
against finite differences in float64, with the weights moved away from where scikit-learn left them; whether
the loss falls in a short warm fit; whether our estimator predicts as the file it exports, and as the
scikit-learn model that `to_sklearn()` writes the trained weights into.

`make coverage` measures it, and writes this page."""
_TITLES = {
    "classifier": "Classifiers",
    "regressor": "Regressors",
    "clusterer": "Clusterers",
    "density": "Densities",
    "outliers": "Outlier detectors",
    "transformer": "Transformers",
    "other": "Others",
    "pipeline": "Pipelines and models in models",
}
_LONGEST = 260
#: What a reason is about, where it is not the training.
_PREFIXES = {
    "written": "to_sklearn: ",
    **dict.fromkeys(("gradient_ort", "falls_ort"), "onnxruntime-training: "),
}
_CONVERTER = re.compile(r"(has a step that skl2onnx does not convert|Unable to find a (shape|converter))")

Facts = Mapping[str, Mapping[str, Any]]


def page(summary: Summary) -> str:
    """Return the page, in Markdown."""
    lines = [_INTRODUCTION, "| | estimators, main case | estimators, any case | cases |", "|---|---|---|---|"]
    lines += [f"| {name} | {main} | {some} | {total} |" for name, main, some, total in summary.counts()]
    for kind in KINDS:
        rows = list(_rows(summary, kind))
        if rows:
            head = "| model | cases trained | by to_sklearn | what is trained | what stands in the way |"
            lines += ["", f"## {_TITLES[kind]}", "", head, "|---|---|---|---|---|", *rows]
    lines += ["", "## Not converted", "", _not_converted(summary)]
    lines += ["", "## Not measured", "", "| estimator | why |", "|---|---|"]
    lines += [f"| {name} | {why} |" for name, why in NO_CASE.items() if name in estimator_classes()]
    lines += ["", _HOW]
    return "\n".join(lines) + "\n"


def _groups(summary: Summary, kind: str) -> dict[str, dict[str, Facts]]:
    """Return the cases of a kind by model, then by variant."""
    groups: dict[str, dict[str, Facts]] = {}
    for name, case in summary.cases.items():
        if case.kind == kind:
            groups.setdefault(case.estimator, {})[name.partition(":")[2]] = summary.results[name]
    return groups


def _rows(summary: Summary, kind: str) -> Iterator[str]:
    for model, variants in sorted(_groups(summary, kind).items()):
        if any(converts(facts) for facts in variants.values()):
            trained = sum(is_trained(facts, "rules") for facts in variants.values())
            written = sum(bool(facts.get("written", {}).get("ok")) for facts in variants.values())
            back = f"{written} of {trained}" if trained else ""
            cells = [model, f"{trained} of {len(variants)}", back, _origins(variants), _remarks(variants)]
            yield f"| {' | '.join(cells)} |"


def _origins(variants: Mapping[str, Facts]) -> str:
    """Return the attributes that are trained in any of the cases."""
    found = dict.fromkeys(
        re.sub(r"\[[^\]]*\]", "[*]", origin)
        for facts in variants.values()
        for origin in facts.get("falls_rules", {}).get("origins", ())
        if origin
    )
    return _cell(", ".join(f"`{origin}`" for origin in found))


def _remarks(variants: Mapping[str, Facts]) -> str:
    """Return why cases are not trained, or not in both ways, and what warnings say; alike ones together."""
    reasons: dict[str, list[str]] = {}
    for variant, facts in variants.items():
        remark = _remark(facts)
        if remark:
            reasons.setdefault(remark, []).append(variant)
    every = len(reasons) == 1 and len(next(iter(reasons.values()))) == len(variants)
    return "; ".join(
        _cell(reason if every else f"{', '.join(names)}: {reason}") for reason, names in reasons.items()
    )


def _remark(facts: Facts) -> str:
    if not converts(facts) and not _CONVERTER.search(_said(facts, "poses") + _said(facts, "converts")):
        return _said(facts, "poses") or _said(facts, "converts") or _said(facts, "fits")
    if not converts(facts):
        return "skl2onnx has no converter"
    if facts.get("poses", {}).get("explained"):
        return str(facts["poses"]["explained"])
    order = (
        "poses",
        "gradient_rules",
        "falls_rules",
        "exported",
        "forward",
        "gradient_ort",
        "falls_ort",
        "written",
    )
    found = next((name for name in order if facts.get(name, {}).get("ok") is False), None)
    if found is None:
        return ""
    return f"{_PREFIXES.get(found, '')}{_said(facts, found)}"


def _said(facts: Facts, name: str) -> str:
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
