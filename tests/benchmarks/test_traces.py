"""The files that a weight and X pass."""

import csv

import pytest

from benchmarks.traces import traced
from tests.docs.pages import DOCS, ROOT


@pytest.mark.slow
def test_paths_of_a_weight_and_of_X_are_those_of_the_file():
    with (DOCS / "explanation/layout.csv").open(encoding="utf-8", newline="") as file:
        listed = [(line["value"], line["file"]) for line in csv.DictReader(file)]
    for value, first, last in [("weight", "I0_coef", "coef"), ("X", "X", "X")]:
        trace = traced(value)
        assert first in trace.names and last in trace.names
        assert 10 < len(trace.files) < len(trace.entered)
        given = {file for name, file in listed if name == value}
        assert len(given ^ set(trace.files)) <= 4 and all(
            (ROOT / "ortlearn" / file).exists() for file in given
        )
