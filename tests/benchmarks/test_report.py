"""Counts, targets and the page of made-up facts."""

import csv

import pytest

from benchmarks.csv_table import write_beside
from benchmarks.model_zoo.case import Case
from benchmarks.model_zoo.page import TITLES, page, rows
from benchmarks.model_zoo.report import TARGETS, Summary

YES = {"ok": True}
TRAINED = {
    **dict.fromkeys(
        ("fits", "converts", "learned", "prepares", "gradient_rules", "gradient_ort", "decreases_ort"), YES
    ),
    "decreases_rules": {"ok": True, "origins": ["estimators_[0].coef_", "estimators_[1].coef_"]},
    "exported": YES,
    "written": YES,
}
NO_CONVERTER = {
    "fits": YES,
    "converts": {"ok": False, "reason": "MissingShapeCalculator: Unable to find a shape calculator for it"},
    "prepares": {
        "ok": False,
        "reason": "ConversionError: One has a step that skl2onnx does not convert",
        "plain": True,
    },
}
WRONG = {**TRAINED, "gradient_ort": {"ok": False, "reason": "gradient of w | is off by 0.5"}}
REFUSED = {**TRAINED, "written": {"ok": False, "reason": "WriteBackError: no attribute", "plain": True}}
STEPS = {
    **dict.fromkeys(("fits", "converts", "learned"), YES),
    "prepares": {
        "ok": False,
        "reason": "NoTrainableWeightError: nothing",
        "plain": True,
        "explained": "it votes",
    },
}


@pytest.fixture
def summary():
    facts = {"One:main": TRAINED, "One:other": WRONG, "Two:main": STEPS, "Three:main": NO_CONVERTER}
    cases = {
        name: Case(name, "classifier", "binary", object, main=name.endswith("main"))
        for name in (*facts, "Four:main")
    }
    return Summary(cases, facts)


def test_estimators_and_cases_are_counted(summary):
    counts = {name: numbers for name, *numbers in summary.counts()}
    assert counts["measured"] == [3, 3, 4]
    assert counts["convert to ONNX"] == [2, 2, 3]
    assert counts["have learned parameters"] == [2, 2, 3]
    assert counts["trained by the rules of ortlearn, with a decreasing loss"] == [1, 1, 2]
    assert counts["trained by onnxruntime-training, with a decreasing loss"] == [1, 1, 1]
    assert counts["silently wrong"] == [0, 1, 1]


def test_missed_targets_are_reported(summary):
    missed = summary.missed()
    assert missed[0].startswith("One:other is silently wrong")
    assert missed[1:] == [f"1 estimators train by {b!r}, the target is {n}." for b, n in TARGETS.items()]


def test_a_crash_is_missing_from_the_targets():
    lost = {"fits": YES, "converts": {"ok": False, "reason": "SIGSEGV", "crash": True}}
    summary = Summary(
        {"One:main": Case("One:main", "other", "binary", object, main=True)}, {"One:main": lost}
    )
    assert summary.missed()[0] == "One:main crashed at converts."


@pytest.mark.slow
def test_the_page_has_a_row_for_each_estimator_with_limitations(summary):
    lines = page(summary).splitlines()
    remark = "other: onnxruntime-training: gradient of w \\| is off by 0.5"
    assert f"| One | 2 | 2 | 2 | {remark} |" in lines
    assert "| Two | 1 | 0 | 0 | it votes |" in lines
    assert "skl2onnx has no converter for Three." in lines
    assert not any(line.startswith("| Three") for line in lines)


@pytest.mark.slow
def test_the_file_has_every_estimator_that_converts(summary, tmp_path):
    path = write_beside(tmp_path / "page.md", TITLES, rows(summary))
    assert path.name == "page.csv"
    with path.open(encoding="utf-8", newline="") as file:
        one, two = csv.DictReader(file)
    assert [two[title] for title in ("model", "cases", "trained", "limitations")] == [
        "Two",
        "1",
        "0",
        "it votes",
    ]
    assert one["trained attributes"] == "estimators_[*].coef_"
    assert one["limitations"] == "other: onnxruntime-training: gradient of w | is off by 0.5"


@pytest.mark.slow
def test_estimators_without_limitations_are_named(summary):
    del summary.results["One:other"], summary.cases["One:other"]
    name = "scaler+ridge"
    summary.cases[name], summary.results[name] = Case(name, "pipeline", "regression", object), TRAINED
    lines = page(summary).splitlines()
    assert "Trained in all of their cases: One." in lines
    assert "Trained in all of their cases: the 1 of [the file](coverage.csv)." in lines


def test_refused_write_backs_are_not_counted_but_reported():
    cases = {"One:main": Case("One:main", "classifier", "binary", object, main=True)}
    summary = Summary(cases, {"One:main": REFUSED})
    counts = {name: main for name, main, *_ in summary.counts()}
    assert counts["are written back by to_sklearn"] == 0
    assert not any("silently" in line for line in summary.missed())
    row = "| One | 1 | 1 | 0 | to_sklearn: no attribute |"
    assert row in page(summary).splitlines()
