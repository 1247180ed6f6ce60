"""The files that a weight and X pass."""

import pytest

from benchmarks.traces import traced


@pytest.mark.slow
def test_ways_of_a_weight_and_of_samples():
    for value, first, last in [("weight", "I0_coef", "coef"), ("X", "X", "X")]:
        trace = traced(value)
        assert first in trace.names and last in trace.names
        assert 10 < len(trace.files) < len(trace.entered)
