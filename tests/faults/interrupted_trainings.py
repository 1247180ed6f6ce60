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
    begun = time.monotonic()
    expected = trainer(KINDS[number % 2]).fit(X, Y)
    length = time.monotonic() - begun
    found = trainer(KINDS[number % 2])
    before = snapshot(found)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    end = End(0)
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0, length))
        found.fit(X, Y)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        end |= End.CLEAN
    if hasattr(found, "trained_coef_"):
        assert found.predict(X).shape == Y.shape
        if end:
            found.fit(X, Y, resume_from=found)
    else:
        check_unchanged(found, before)
        found.fit(X, Y)
    check_same(found, expected)
    return end | End.RIGHT


FAULT = Fault("Ctrl-C while it trains, and resumed from the estimator", _attempt, tries=40)
