"""A training is killed at a random time, and resumed from its checkpoints."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault, Lost
from benchmarks.faults.processes import forked, wait
from benchmarks.faults.subjects import KINDS, check_same, fit, trainer
from ortlearn import saving
from ortlearn.callbacks import ModelCheckpoint

__all__ = ["FAULT"]


def _train(kind, streams: bool, folder: Path) -> None:
    checkpoint = ModelCheckpoint(folder / "run", every=1, keep=2, seconds=0, resume=True)
    trained = fit(trainer(kind, max_iter=8).set_callbacks(checkpoint), streams)
    saving.save(trained.set_callbacks(), folder / "result.zip")


def _attempt(draw: Random, number: int, folder: Path) -> End:
    train = partial(_train, KINDS[number % 2], bool(number % 4 // 2))
    (folder / "whole").mkdir()
    begun = time.monotonic()
    assert wait(forked(lambda: train(folder / "whole"))) == 0, "failed without the fault"
    length = time.monotonic() - begun
    n_killed = 0
    while n_killed < 2 and not (folder / "result.zip").exists():
        pid = forked(lambda: train(folder))
        time.sleep(draw.uniform(0, length))
        os.kill(pid, signal.SIGKILL)
        n_killed += wait(pid) == -signal.SIGKILL
        _check_whole(folder / "run")
    assert wait(forked(lambda: train(folder))) == 0, "not resumed"
    check_same(saving.load(folder / "result.zip"), saving.load(folder / "whole" / "result.zip"))
    return End.RIGHT


def _check_whole(folder: Path) -> None:
    for path in folder.glob("*.zip"):
        try:
            saving.load(path)
        except ValueError as error:
            raise Lost(f"{path.name} is damaged") from error


FAULT = Fault(
    "process killed (`SIGKILL`) during a training, up to twice; training resumed", _attempt, tries=20
)
