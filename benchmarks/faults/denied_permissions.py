"""Files that cannot be read and folders that cannot be written."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from benchmarks.faults.fault import End, Fault, Lost
from benchmarks.faults.subjects import X, Y, check_same, check_unchanged, snapshot, trainer
from ortlearn import OrtGradientOptimizer, saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import SavedFileError

__all__ = ["FAULT"]

#: Id of a user without the rights of root.
NOBODY = 65534


def _checkpoints(estimator, folder: Path) -> None:
    estimator.set_callbacks(ModelCheckpoint(folder / "run", every=1)).fit(X, Y)


def _resume(estimator, folder: Path) -> None:
    try:
        trainer().fit(X, Y, resume_from=folder / "model.zip")
    except SavedFileError as error:
        if "has a finished training" not in str(error):  # read, but the training is complete
            raise


#: Uses of a path: first of a folder that cannot be written, then of files that cannot be read.
WRITES: tuple[Callable, ...] = (
    lambda estimator, folder: saving.save(estimator, folder / "new.zip"),
    lambda estimator, folder: saving.save(estimator, folder / "new"),
    lambda estimator, folder: estimator.save_onnx_graph(folder / "graphs"),
    _checkpoints,
)
READS: tuple[Callable, ...] = (
    lambda estimator, folder: saving.load(folder / "model.zip"),
    lambda estimator, folder: saving.load(folder / "saved"),
    _resume,
    lambda estimator, folder: OrtGradientOptimizer(folder / "trained.onnx").fit(X, Y[:, None]),
)


@contextmanager
def _denied(folder: Path, mode: int) -> Iterator[None]:
    """Remove permissions of a folder or its files, also for root."""
    paths = [folder, *folder.rglob("*")]
    taken = [folder] if mode else [path for path in paths if path.is_file()]
    root = os.geteuid() == 0
    for path in paths if root else ():
        os.chown(path, NOBODY, NOBODY)
    for path in taken:
        path.chmod(mode)
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path in taken:
            path.chmod(0o700)


def _attempt(draw: Random, number: int, folder: Path) -> End:
    uses = WRITES + READS
    use, mode = uses[number % len(uses)], 0o500 if number % len(uses) < len(WRITES) else 0
    found = trainer().fit(X, Y)
    for name in ("permitted", "denied"):
        (folder / name).mkdir()
        found.save_onnx_graph(folder / name)
        saving.save(found, folder / name / "model.zip")
        saving.save(found, folder / name / "saved")
    folder.chmod(0o755)
    use(copy.deepcopy(found), folder / "permitted")
    folder /= "denied"
    before, names = snapshot(found), sorted(os.listdir(folder))
    try:
        with _denied(folder, mode):
            use(found, folder)
    except (OSError, ValueError) as error:
        assert "Permission denied" in str(error) and str(folder) in str(error), error
    else:
        raise AssertionError("it is permitted")
    check_unchanged(found.set_callbacks(), before)
    if sorted(os.listdir(folder)) != names:
        raise Lost("files were left, or removed")
    use(found, folder)
    check_same(saving.load(folder / "model.zip"), found)
    return End.CLEAN | End.RIGHT


FAULT = Fault("permission denied to write or read models and checkpoints", _attempt, tries=24)
