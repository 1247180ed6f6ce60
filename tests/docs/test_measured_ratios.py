"""Ratios and counts in pages agree with the pages of measurements."""

import re

from benchmarks.drift.picture import ANSWERS, FAMILIES, accuracies
from benchmarks.performance_page import page
from benchmarks.tables import read_tables
from tests.docs.pages import DOCS, ROOT

PERFORMANCE = read_tables(DOCS / "performance.csv")
COVERAGE = (DOCS / "coverage.md").read_text(encoding="utf-8")
#: Beginnings of the names of contenders.
CONTENDERS = ("OrtGradientForwardBackwardOptimizer", "scikit-learn", "torch", "skorch", "JAX")


def measured(network, size):
    """Return our time per batch over that of each contender, of the faster version, on one thread."""
    title = rf"{re.escape(network)} [\w ]+, [\d,]+ samples, batches of {size}; one thread"
    times = [each for each in PERFORMANCE if each.section == "Time per batch"]
    (found,) = [each for each in times if re.fullmatch(title, each.title)]
    pairs = list(zip(found.column("contender"), found.column("ratio"), strict=True))
    return {
        name: max(float(ratio) for label, ratio in pairs if label.startswith(name)) for name in CONTENDERS
    }


def test_page_of_performance_is_that_of_its_file():
    assert (DOCS / "performance.md").read_text(encoding="utf-8") == page(PERFORMANCE)


def test_right_choice():
    ratios = [measured(*case) for case in (("100-50-10-1", 15), ("100-50-10-1", 200), ("64-128-64-10", 256))]
    assert all(each["scikit-learn"] < 0.5 and each["torch"] < 0.5 and each["JAX"] > 0.9 for each in ratios)
    assert measured("100-1", 256)["scikit-learn"] < 0.5
    named = {each.section: each for each in PERFORMANCE}
    first = dict(
        zip(named["Start-up"].column("contender"), named["Start-up"].column("first fit"), strict=True)
    )
    assert float(first["OrtGradientOptimizer"]) < float(first["JAX, jit and lax.scan"])
    models = named["Models compared with their scikit-learn fit"]
    over = dict(zip(models.column("model"), map(float, models.column("/ fit")), strict=True))
    assert all(value < 0.5 for name, value in over.items() if "Forest" in name or "Boosting" in name)
    assert next(value for name, value in over.items() if name.startswith("Ridge")) > 1
    assert max(map(float, named["Searches"].column("ratio"))) < 0.7


def test_rounded_ratios():
    small, large = measured("100-50-10-1", 15), measured("784-512-256-10", 128)
    assert 0.07 < small["scikit-learn"] < 0.14 and 0.04 < small["torch"] < 0.13
    assert 0.6 < small["OrtGradientForwardBackwardOptimizer"] < 1
    assert 0.45 < large["scikit-learn"] < 0.8 and 0.65 < large["skorch"] < 0.85
    assert 0.8 < large["torch"] < 1.15
    linear = measured("10-1", 10)
    assert min(small["JAX"], linear["JAX"], linear["scikit-learn"]) > 1 and linear["skorch"] < 0.02
    phrases = {
        "README.md": ("a tenth of the time of MLPRegressor and of torch",),
        "docs/howto/from_torch.md": ("a hundredth of the time of skorch", "about three quarters"),
    }
    for path, parts in phrases.items():
        text = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        assert all(part in text for part in parts)


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
    assert len(found) == 18 and all(len(row) == len(ANSWERS) for row in found.values())
    first, forests = FAMILIES.values()
    assert all(warm > max(others) for (drift, _), (*others, warm) in found.items() if drift in first)
    moved = [row for (drift, _), row in found.items() if drift == forests[0]]
    assert len(moved) == 3 and all(both > warm for *_, both, warm in moved)
    assert all(warm > old - 0.02 for old, *_, warm in found.values())
