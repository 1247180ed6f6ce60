"""A training is interrupted as by Ctrl-C at a random time, and resumed from the estimator."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import KINDS, X, Y, check_same, check_unchanged, fit, snapshot, trainer

__all__ = ["FAULT"]


def _attempt(draw: Random, number: int, folder: Path) -> End:
    kind, sent, streams = KINDS[number % 2], [], bool(number % 4 // 2)

    def interrupt(signal_number, frame):
        sent.append(signal_number)
        raise KeyboardInterrupt

    fit(trainer(kind), streams)  # creates the sessions
    begun = time.monotonic()
    expected = fit(trainer(kind), streams)
    length = time.monotonic() - begun
    found = trainer(kind)
    before = snapshot(found)
    signal.signal(signal.SIGALRM, interrupt)
    end = End(0)
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-4, length))
        fit(found, streams)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        end |= End.CLEAN
    assert bool(sent) == bool(end), "the interrupt was swallowed"
    if not hasattr(found, "trained_coef_"):
        check_unchanged(found, before)
        fit(found, streams)
    elif end:
        assert found.predict(X).shape == Y.shape
        fit(found, streams, resume_from=found)
    check_same(found, expected)
    return end | End.RIGHT


FAULT = Fault("Ctrl-C during a training; training resumed from the estimator", _attempt, tries=40)
