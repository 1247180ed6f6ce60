"""Trainings are interrupted as by Ctrl-C at random moments, and resumed from the estimator."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random

from tests.faults.fault import End, Fault
from tests.faults.subjects import KINDS, X, Y, check_same, check_unchanged, snapshot, trainer

__all__ = ["FAULT"]


def _attempt(draw: Random, number: int, folder: Path) -> End:
    kind, sent = KINDS[number % 2], []

    def interrupt(signal_number, frame):
        sent.append(signal_number)
        raise KeyboardInterrupt

    trainer(kind).fit(X, Y)  # sessions are made once
    begun = time.monotonic()
    expected = trainer(kind).fit(X, Y)
    length = time.monotonic() - begun
    found = trainer(kind)
    before = snapshot(found)
    signal.signal(signal.SIGALRM, interrupt)
    end = End(0)
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-4, length))
        found.fit(X, Y)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        end |= End.CLEAN
    assert bool(sent) == bool(end), "the interrupt was swallowed"
    if not hasattr(found, "trained_coef_"):
        check_unchanged(found, before)
        found.fit(X, Y)
    elif end:
        assert found.predict(X).shape == Y.shape
        found.fit(X, Y, resume_from=found)
    check_same(found, expected)
    return end | End.RIGHT


FAULT = Fault("Ctrl-C while it trains, and resumed from the estimator", _attempt, tries=40)
