"""Measurement of every estimator with default parameters."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.csv_table import write_beside
from benchmarks.trust import datasets, measurement, page
from benchmarks.trust.estimators import ESTIMATORS, applies


@pytest.mark.parametrize("name", ["wine", "friedman2", "noisy"])
def test_splits_are_disjoint_and_small(name):
    data = datasets.parts(name, 0)
    rows = [set(map(bytes, X)) for X, _ in (data.train, data.new, data.test)]
    assert all(not a & b for i, a in enumerate(rows) for b in rows[i + 1 :])
    assert len(data.train[0]) <= datasets.N_TRAIN and len(data.drifted[0]) == len(data.new[0])
    assert not np.array_equal(data.drifted[0], data.new[0])


def test_estimators_are_of_both_kinds():
    assert len(ESTIMATORS) > 90
    assert applies("SVC", True) and not applies("SVR", True) and applies("RegressorChain", False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_case_and_its_results():
    row = measurement.measure(measurement.Case("wine", "raw", "DecisionTreeClassifier"), [0, 1])
    assert row.fits["fresh"].gains == row.fits["same"].gains == [0.0, 0.0]
    assert all(row.fits["same"].kept) and not row.skipped
    found = page.read([json.dumps(asdict(row)), json.dumps(asdict(row))])
    assert [len(own.gains) for own in found["new"]] == [4] and not found["fresh"][0].is_slow


def test_splits_are_added_to_a_table(tmp_path):
    rows = [
        measurement.Row("a raw B", [seed], [0.5], {start: measurement.Fits() for start in measurement.STARTS})
        for seed in range(3)
    ]
    for row, gain in zip(rows, (-0.0124, 0.1, 0.25), strict=True):
        row.fits["new"] = measurement.Fits([gain], [0.3], [0.01], [False])
    lines = [json.dumps(asdict(row)) for row in rows]
    first = page.read(lines[:2])["new"]
    path = write_beside(tmp_path / "page.md", page.TITLES, map(page.row_of, first))
    (known,) = page.read_table(path)
    assert known.gains == [-0.0124, 0.1] and known.seconds == [0.3, 0.3]
    known.seconds = [9.0, 9.0]  # of a slower machine
    (found,) = page.read(lines, [known])["new"]
    assert found.gains == [-0.0124, 0.1, 0.25] and len(found.own) == 3 and found.seconds == [0.3]
    (again,) = page.read([lines[0], lines[2]])["new"]  # without split 1, which is added
    (found,) = page.read(lines, page.read_table(write_beside(path, page.TITLES, [page.row_of(again)])))["new"]
    assert found.gains == [-0.0124, 0.25, 0.1] and found.splits == {0, 1, 2}


def test_intervals_of_gains():
    assert page.Result("a", "new", [-0.03, -0.03, -0.03]).highest == pytest.approx(-0.03)
    assert page.Result("a", "new", [-0.2, 0.2]).highest > 0


def test_losses_that_are_not_repeated():
    assert page.Result("a", "new", [-0.2, 0.0, 0.0]).repeats() == [0.0, 0.0]
    assert page.Result("a", "new", [-0.2, -0.2, -0.2]).repeats() == [-0.2] * 3
    assert not page.Result("a", "new", [0.0, 0.0, 0.0]).repeats()


@pytest.mark.parametrize("name", ["MultiOutputClassifier", "ClassifierChain"])
def test_losses_of_several_columns_are_bounded(name):
    """A few samples that were misclassified with confidence decided: gains of -0.1 to -0.16."""
    case = measurement.Case("iris", "scaled", name)
    found = measurement.measure(case, [5, 7], starts=["drifted"]).fits["drifted"]
    assert min(found.gains) > -0.05
