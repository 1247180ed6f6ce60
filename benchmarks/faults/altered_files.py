"""Altered bytes of saved estimators and checkpoints: changed, removed or added."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np

from benchmarks.faults.fault import End, Fault
from benchmarks.faults.subjects import X, Y, check_same, trainer
from ortlearn import saving
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.exceptions import SavedFileError

__all__ = ["FAULT"]


def _alter(path: Path, draw: Random) -> None:
    content = bytearray(path.read_bytes())
    place = draw.randrange(len(content))
    match draw.choice(["byte", "zeros", "cut off", "repeated"]):
        case "byte":
            content[place] ^= 1 << draw.randrange(8)
        case "zeros":
            content[place : place + 512] = bytes(len(content[place : place + 512]))
        case "cut off":
            del content[place:]
        case "repeated":
            content += content[place:]
    path.write_bytes(content)


def _attempt(draw: Random, number: int, folder: Path) -> End:
    expected = trainer().fit(X, Y)
    if number % 3 == 2:
        checkpoint = ModelCheckpoint(folder, every=1, seconds=None)
        trainer(max_iter=4).set_callbacks(checkpoint).fit(X, Y)
        _alter(max(folder.glob("*.zip")), draw)
        check_same(trainer().fit(X, Y, resume_from=folder), expected)  # from the previous checkpoint
        return End.RIGHT
    path = folder / ("model.zip" if number % 3 else "saved")
    saving.save(expected, path)
    _alter(path if path.is_file() else draw.choice(sorted(path.iterdir())), draw)
    end = End(0)
    try:
        # Some bytes of the zip format have no effect.
        np.testing.assert_array_equal(saving.load(path).predict(X), expected.predict(X))
    except SavedFileError as error:
        assert str(path) in str(error), error
        end |= End.CLEAN
    saving.save(expected, path)
    check_same(saving.load(path), expected)
    return end | End.RIGHT


FAULT = Fault("saved estimator or checkpoint altered, truncated or extended", _attempt, tries=60)
