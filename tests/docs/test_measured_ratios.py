"""Ratios and counts in pages equal those in the pages of measurements."""

import re

import pytest

from benchmarks.drift.picture import ANSWERS, accuracies
from tests.docs.pages import DOCS, ROOT, Page

PERFORMANCE = (DOCS / "performance.md").read_text(encoding="utf-8")
COVERAGE = (DOCS / "coverage.md").read_text(encoding="utf-8")
#: Beginnings of the names of contenders, which are also the columns of tables.
CONTENDERS = ("scikit-learn", "torch", "JAX")


def measured(network, size):
    """Return the ratios of the time per batch to that of each contender, with one thread."""
    title = rf"^{re.escape(network)} \w+, [\d,]+ rows, batches of {size}; one thread:\n\n((?:\|.*\n)+)"
    lines = re.search(title, PERFORMANCE, re.MULTILINE)[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: float(row[-1]) for name in CONTENDERS for row in cells if row[0].startswith(name)}


def target(figure):
    """Return the measured value of a target."""
    return float(re.search(rf"^\| {re.escape(figure)} \| [^|]+ \| ([\d.]+) \|", PERFORMANCE, re.MULTILINE)[1])


def test_table_of_the_epoch_loop():
    (table,) = [t for t in Page(DOCS / "explanation/epoch_loop.md").tables() if t.header[0] == "network"]
    assert len(table.rows) == 2
    for network, size, *ratios in table.rows:
        found = measured(network, size)
        assert dict(zip(table.header[2:], map(float, ratios), strict=True)) == found


@pytest.mark.parametrize("path", ["README.md", "docs/explanation/epoch_loop.md"])
def test_both_estimators(path):
    text = " ".join((ROOT / path).read_text(encoding="utf-8").split())
    step = target("100-50-10-1, batches of 15: time per batch / MLPRegressor's")
    two_calls = target("100-50-10-1, batches of 15: forward-backward / MLPRegressor's")
    assert f"{step:.2f}" in text and f"{two_calls:.2f}" in text


def counted(name):
    """Return a row of the page of models: estimators by main case, by any case, and cases."""
    row = re.search(rf"^\| {re.escape(name)} \| (\d+) \| (\d+) \| (\d+) \|$", COVERAGE, re.MULTILINE)
    return [int(number) for number in row.groups()]


def test_counts_of_models():
    _, estimators, cases = counted("measured")
    converted, learned = (counted(name)[1] for name in ("convert to ONNX", "have learned parameters"))
    trained, by_builders = (
        counted(f"correct gradient by {way}")[1] for way in ("the rules of ortlearn", "onnxruntime-training")
    )
    readme, front = (
        " ".join(path.read_text(encoding="utf-8").split()) for path in (ROOT / "README.md", DOCS / "index.md")
    )
    for text in (readme, front):
        assert f"{trained} of scikit-learn's {estimators} estimators" in text
    assert f"{cases} cases of {estimators} estimators" in readme
    assert f"{converted} of the estimators convert to ONNX, {learned} of these have" in readme
    assert f"and {trained} of these train with a gradient" in readme
    assert f"{by_builders} do by onnxruntime-training" in readme


def test_picture_of_the_readme_has_its_alternative_text():
    found = accuracies((DOCS / "howto/adapt_to_new_data.md").read_text(encoding="utf-8"))
    assert len(found) == 9 and all(len(row) == len(ANSWERS) for row in found.values())
    assert all(warm > max(others) for *others, warm in found.values())
