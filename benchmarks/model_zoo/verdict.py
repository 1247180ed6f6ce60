"""Summarize the facts of a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["RESULTS", "converts", "crashed", "has_learned", "is_trained", "reason", "silently_wrong", "state"]

Facts = Mapping[str, Mapping[str, Any]]
#: Facts about results, in the order they are found out: false without an error is silently wrong.
RESULTS = (
    "gradient_rules",
    "gradient_ort",
    "forward",
    "decreases_rules",
    "decreases_ort",
    "two_calls",
    "exported",
    "written",
    "defaults",
)


def _ok(facts: Facts, *names: str) -> bool:
    return all(bool(facts.get(name, {}).get("ok")) for name in names)


def is_trained(facts: Facts, backend: str) -> bool:
    """Return whether the gradient is correct, the loss decreases, and the exported file predicts equally."""
    return (
        _ok(facts, f"gradient_{backend}", f"decreases_{backend}")
        and has_learned(facts)
        and facts.get("exported", {}).get("ok") is not False
    )


def converts(facts: Facts) -> bool:
    """Return whether a case converts, by skl2onnx or by model definitions."""
    return _ok(facts, "converts") or _ok(facts, "prepares") or bool(facts.get("prepares", {}).get("covered"))


def has_learned(facts: Facts) -> bool:
    """Return whether the graph of a case has learned parameters, or trained ones without skl2onnx."""
    return _ok(facts, "learned") or (not _ok(facts, "converts") and _ok(facts, "prepares"))


def crashed(facts: Facts) -> str | None:
    """Return the fact at which the process crashed, None without a crash."""
    return next((name for name, fact in facts.items() if fact.get("crash")), None)


def silently_wrong(facts: Facts) -> list[str]:
    """Return the facts that are false without an error or a warning."""
    return [
        name
        for name in RESULTS
        if facts.get(name, {}).get("ok") is False and not facts[name].keys() & {"plain", "crash"}
    ]


def state(facts: Facts) -> str:
    """Return the status of a case in a few words."""
    if crashed(facts):
        return "crash"
    if not _ok(facts, "fits"):
        return "not fitted"
    if not converts(facts):
        return "not converted"
    if silently_wrong(facts):
        return "wrong"
    if is_trained(facts, "rules"):
        return "trained" if is_trained(facts, "ort") or "gradient_ort" not in facts else "trained by rules"
    return "not trained" if has_learned(facts) else "nothing learned"


def reason(facts: Facts) -> str:
    """Return the reasons of false facts."""
    lost = [
        f"{name}: {fact['reason']}"
        for name, fact in facts.items()
        if fact.get("ok") is False and fact.get("reason")
    ]
    return "; ".join(lost)
