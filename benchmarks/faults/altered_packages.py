"""Damaged training packages: altered, missing and exchanged files, folders, pipes, devices and links."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import numpy as np

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import X, Y, trainer
from ortlearn.exceptions import SavedFileError
from ortlearn.saving import export_training, load_training, merge_weights
from tests.saving.damaged_packages import damage

__all__ = ["FAULT"]

SOURCE = Path(__file__).parents[2] / "runtimes" / "python_bare" / "ortlearn_trainer.py"


def _runner() -> Any:
    spec = importlib.util.spec_from_file_location("ortlearn_trainer", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _trained(folder: Path) -> np.ndarray:
    """Return the losses of an epoch of the runner in Python."""
    runner = _runner().Trainer(folder)
    return np.array(runner.train_epoch(runner.columns(X, Y), np.arange(len(X))))


READERS = {
    "load_training": lambda folder: load_training(folder).predict(X),
    "merge_weights": lambda folder: np.frombuffer(merge_weights(folder).SerializeToString(), np.uint8),
    "runner in Python": _trained,
}


def _has_manifest(package: Path) -> bool:
    """Return whether the manifest is a regular file of JSON."""
    path = package / "training.json"
    try:
        return path.is_file() and isinstance(json.loads(path.read_bytes()), dict)
    except ValueError:
        return False


def _attempt(draw: Random, number: int, folder: Path) -> End:
    package, end = folder / "package", End(0)
    trained = trainer().fit(X, Y)
    export_training(trained, package, batch_size=64)
    expected = {name: read(package) for name, read in READERS.items()}
    names = sorted(path.name for path in package.iterdir())
    what = damage(package, draw, names)
    for name, read in READERS.items():
        try:
            np.testing.assert_array_equal(read(package), expected[name], err_msg=f"{name}, {what}")
        except (SavedFileError, OSError, ValueError) as error:
            if not isinstance(error, SavedFileError | OSError):
                assert name == "runner in Python", (error, what)
            assert str(package) in str(error), (error, what)
            end |= End.CLEAN
    for path in package.iterdir():  # a folder is not replaced by a file
        if path.is_dir() and not path.is_symlink():
            rmtree(path)
    try:
        export_training(trained, package, batch_size=64)
    except SavedFileError as error:  # a folder without a readable manifest may be another one, and is kept
        assert str(package) in str(error) and not _has_manifest(package), (error, what)
        package = folder / "again"
        export_training(trained, package, batch_size=64)
        end |= End.CLEAN
    for name, read in READERS.items():
        np.testing.assert_array_equal(read(package), expected[name], err_msg=name)
    assert sorted(path.name for path in package.iterdir()) == names
    return end | End.RIGHT


FAULT = Fault(
    "training package: file altered, missing, exchanged, a pipe, a device or a link", _attempt, tries=150
)
