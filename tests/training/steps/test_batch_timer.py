"""Tests of the number of batches per call."""

from ortlearn.training.steps.batch_timer import BatchTimer


def test_number_of_batches_follows_from_the_measured_time():
    timer = BatchTimer()
    timer.note(100, seconds=0.5)
    assert (timer.batches(1000), timer.batches(150)) == (200, 150)
