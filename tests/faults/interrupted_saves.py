"""Processes are killed, or interrupted as by Ctrl-C, while they replace a saved estimator by another one."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from random import Random

import pytest

from ortlearn import saving
from tests.callbacks.stand_ins import Faults
from tests.faults.fault import End, Fault, Lost
from tests.faults.processes import forked, wait
from tests.faults.subjects import X, Y, check_same, trainer, weights

__all__ = ["FAULT"]


def _save(estimator, path: Path, at: int, sent: signal.Signals) -> None:
    """Save an estimator; a signal comes at a call of the system."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        faults = Faults(patch, at, lambda name, path: os.kill(os.getpid(), sent))
        saving.save(estimator, path)
    assert not faults.struck, "the interrupt was swallowed"


def _attempt(draw: Random, number: int, folder: Path) -> End:
    """Go through all calls, one after the other: each time the old file is there, or the new one."""
    path = folder / ("model.zip" if number % 2 else "model")
    sent = (signal.SIGKILL, signal.SIGINT)[number // 2 % 2]
    old, new = trainer(max_iter=1).fit(X, Y), trainer(max_iter=2).fit(X, Y)
    saving.save(old, path)
    for at in itertools.count(1):
        if wait(forked(lambda at=at: _save(new, path, at, sent))) == 0:
            break
        try:
            found = weights(saving.load(path))
        except ValueError as error:
            raise Lost(f"{path.name} is damaged") from error
        if found not in (weights(old), weights(new)):
            raise Lost(f"{path.name} is neither the old one nor the new one")
        saving.save(old, path)
    assert at > 5, "nothing was interrupted"
    check_same(saving.load(path), new)
    return End.RIGHT


FAULT = Fault("save killed or interrupted at every call of the system, zip file and folder", _attempt, tries=4)
