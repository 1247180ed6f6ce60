"""Files and folders that the user may not read, or not write to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

from ortlearn import OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from tests.faults.fault import End, Fault
from tests.faults.subjects import X, Y, check_same, check_unchanged, snapshot, trainer

__all__ = ["FAULT"]

#: A user who is not root: root may read and write everything.
NOBODY = 65534


def _checkpoints(estimator, folder: Path) -> None:
    estimator.set_callbacks(ModelCheckpoint(folder / "run", every=1)).fit(X, Y)


#: Uses of the path that is denied: a folder that may not be written to, then files that may not be read.
WRITES: tuple[Callable, ...] = (
    lambda estimator, folder: saving.save(estimator, folder / "new.zip"),
    lambda estimator, folder: saving.save(estimator, folder / "new"),
    lambda estimator, folder: estimator.save_onnx_graph(folder / "graphs"),
    _checkpoints,
)
READS: tuple[Callable, ...] = (
    lambda estimator, folder: saving.load(folder / "model.zip"),
    lambda estimator, folder: saving.load(folder / "saved"),
    lambda estimator, folder: trainer().fit(X, Y, resume_from=folder / "model.zip"),
    lambda estimator, folder: OrtGradientOptimizer(folder / "trained.onnx").fit(X, Y),
)


def _attempt(draw: Random, number: int, folder: Path) -> End:
    uses = WRITES + READS
    use, writes = uses[number % len(uses)], number % len(uses) < len(WRITES)
    expected = trainer().fit(X, Y)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    found = trainer().fit(X, Y)
    saving.save(found, folder / "model.zip")
    saving.save(found, folder / "saved")
    found.save_onnx_graph(folder)
    before = snapshot(found)
    names = sorted(path.name for path in folder.iterdir())
    denied = [folder] if writes else [path for path in folder.rglob("*") if path.is_file()]
    for path in denied:
        path.chmod(0o500 if writes else 0)
    try:
        use(found, folder)
    except (OSError, ValueError) as error:
        assert "Permission denied" in str(error) and str(folder) in str(error), error
    else:
        raise AssertionError("it is permitted")
    for path in denied:
        path.chmod(0o700)
    check_unchanged(found.set_callbacks(), before)
    assert sorted(path.name for path in folder.iterdir()) == names, "something was left"
    if number % len(uses) != 6:  # a training that is over is not resumed
        use(found, folder)
    check_same(saving.load(folder / "model.zip"), expected)
    return End.CLEAN | End.RIGHT


FAULT = Fault("permission denied where models and checkpoints are written or read", _attempt, tries=24)
