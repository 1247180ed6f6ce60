"""A process is killed, or interrupted as by Ctrl-C, while it replaces a saved estimator."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from random import Random

import pytest

from benchmarks.faults.fault import End, Fault, Lost
from benchmarks.faults.processes import forked, wait
from benchmarks.faults.simulated_training import Faults
from benchmarks.faults.subjects import X, Y, check_same, trainer, weights
from ortlearn import saving

__all__ = ["FAULT"]

#: Exit code of an interrupted process.
INTERRUPTED = 2


def _save(estimator, path: Path, at: int, sent: signal.Signals) -> None:
    """Save an estimator; a signal is sent at a system call."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        faults = Faults(patch, at, lambda name, path: os.kill(os.getpid(), sent))
        try:
            saving.save(estimator, path)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
    assert not faults.struck, "the interrupt was swallowed"


def _attempt(draw: Random, number: int, folder: Path) -> End:
    name = ("model.zip", "model")[number % 2]
    sent = (signal.SIGKILL, signal.SIGINT)[number // 2 % 2]
    path = folder / name
    old, new = trainer(max_iter=1).fit(X, Y), trainer(max_iter=2).fit(X, Y)
    saving.save(old, path)
    (folder / "elsewhere").mkdir()
    saving.save(old, folder / "elsewhere" / name)
    with pytest.MonkeyPatch.context() as patch:
        counted = Faults(patch, 10**9, lambda name, path: None)
        saving.save(new, folder / "elsewhere" / name)
    at = draw.randint(1, 10**9 - counted.left)
    code = wait(forked(lambda: _save(new, path, at, sent)))
    assert code == (-signal.SIGKILL if sent == signal.SIGKILL else INTERRUPTED), code
    try:
        found = weights(saving.load(path))
    except ValueError as error:
        raise Lost(f"{path.name} is damaged") from error
    if found not in (weights(old), weights(new)):
        raise Lost(f"{path.name} is neither the old one nor the new one")
    saving.save(new, path)
    check_same(saving.load(path), new)
    return End.RIGHT


FAULT = Fault("process killed or interrupted (Ctrl-C) at a system call of `saving.save`", _attempt, tries=80)
