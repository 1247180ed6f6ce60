"""Calls of the graphs that compute results before training."""

from contextlib import contextmanager

import onnxruntime
import pytest

from tests.calls import calls_of


@pytest.fixture
def sizes_of_calls():
    """Return a function that observes the numbers of samples of an input, one per call."""

    @contextmanager
    def counting(name):
        sizes = []
        with calls_of(onnxruntime.InferenceSession.run) as calls:
            yield sizes
        # the trial before has all outputs, without their names
        sizes += [len(call["input_feed"][name]) for call in calls if call["output_names"] is not None]

    return counting
