"""Crashes and cases without an end are reported, and later cases are still measured."""

import pytest

from benchmarks.model_zoo.processes import Worker


@pytest.fixture
def worker():
    worker = Worker("benchmarks.model_zoo.faulty_worker")
    yield worker
    worker.close()


def test_a_crash_is_a_fact_and_the_next_case_is_measured(worker):
    facts = worker.measure("crash", limit=30)
    assert facts["fits"] == {"ok": True}
    assert facts["converts"] == {"ok": False, "reason": "the process ended: SIGKILL", "crash": True}
    assert worker.measure("fine", limit=30) == {"fits": {"ok": True}, "converts": {"ok": True}}


def test_a_case_without_end_is_stopped(worker):
    facts = worker.measure("endless", limit=0.5)
    assert facts["converts"]["crash"] and "still at it" in facts["converts"]["reason"]


def test_a_worker_that_does_not_start_is_an_error():
    with pytest.raises(RuntimeError, match="No module named"):
        Worker("benchmarks.model_zoo.no_such_worker").measure("fine")
