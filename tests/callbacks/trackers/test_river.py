"""Streams with the drift detectors of river."""

import pytest

from ortlearn.callbacks import StreamMonitor
from tests.callbacks.test_stream_monitor import CLASSES, batches, stream_of

drift = pytest.importorskip("river.drift")
pytestmark = pytest.mark.needs_callbacks


@pytest.mark.parametrize("name", ["ADWIN", "KSWIN", "PageHinkley"])
def test_detectors_of_river(name):
    found = getattr(drift, name)() if name == "PageHinkley" else name
    monitor = StreamMonitor(detector=found)
    stream = stream_of(monitor)
    for X, y in batches(40, changes_at=30):
        stream.partial_fit(X, y, classes=CLASSES)
    assert isinstance(monitor.detector_, getattr(drift, name)) and monitor.detector is found
    first = next(record["call"] for record in monitor.records if record["drift"] and record["call"] > 30)
    assert first <= 34


def test_unknown_detector():
    stream = stream_of(StreamMonitor(detector="EDDM2"))
    with pytest.raises(
        ValueError, match="detector='EDDM2' must be 'PageHinkley' or the name of one in river"
    ):
        stream.partial_fit(*next(batches(1)), classes=CLASSES)
