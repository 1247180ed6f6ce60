"""Two processes train at the same time with checkpoints in one folder."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault, Lost
from benchmarks.faults.processes import forked, wait
from benchmarks.faults.subjects import X, Y, check_same, trainer
from ortlearn.callbacks import ModelCheckpoint

__all__ = ["FAULT"]


def _train(folder: Path, seed: int, wait_for: float) -> None:
    time.sleep(wait_for)
    trained = trainer(random_state=seed).set_callbacks(ModelCheckpoint(folder / "run", every=1))
    try:
        trained.fit(X, Y)
        end = "trained"
    except ValueError as error:
        end = str(error)
    (folder / f"end-{seed}").write_text(end)


def _attempt(draw: Random, number: int, folder: Path) -> End:
    children = [forked(lambda seed=seed: _train(folder, seed, draw.uniform(0, 0.1))) for seed in (1, 2)]
    assert [wait(child) for child in children] == [0, 0], "an unclear error"
    ends = {seed: (folder / f"end-{seed}").read_text() for seed in (1, 2)}
    trained = [seed for seed, end in ends.items() if end == "trained"]
    assert len(trained) == 1, ends
    (refused,) = (end for end in ends.values() if end != "trained")
    assert "Another training is writing" in refused or "checkpoints of an earlier fit" in refused, refused
    expected = trainer(random_state=trained[0]).fit(X, Y)
    for number in (5, 3):  # a complete training cannot be resumed
        (folder / "run" / f"epoch-{number:06}.zip").unlink()
        try:
            found = trainer(random_state=trained[0]).fit(X, Y, resume_from=folder / "run")
        except ValueError as error:
            raise Lost("the checkpoints are not those of the training that went on") from error
        check_same(found, expected)
    return End.CLEAN | End.RIGHT


FAULT = Fault("two trainings with the same checkpoint folder: the second one is refused", _attempt, tries=20)
