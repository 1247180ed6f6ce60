"""The disk is full at a system call, or a file reaches a size limit."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import onnx
import pytest

from benchmarks.faults.fault import End, Fault, Lost
from benchmarks.faults.simulated_training import Faults
from benchmarks.faults.subjects import X, Y, trainer, weights
from ortlearn import saving
from ortlearn.callbacks import ModelCheckpoint

__all__ = ["FAULT"]


def _write_checkpoints(estimator, folder: Path) -> None:
    checkpoint = ModelCheckpoint(folder, every=1, keep=2, seconds=None, overwrite=True)
    trainer(max_iter=estimator.max_iter).set_callbacks(checkpoint).fit(X, Y)


def _read_saved(path: Path) -> dict[str, bytes]:
    return weights(saving.load(path))


def _read_graph(folder: Path) -> dict[str, bytes]:
    initializers = onnx.load(folder / "trained.onnx").graph.initializer
    return {tensor.name: onnx.numpy_helper.to_array(tensor).tobytes() for tensor in initializers}


def _read_checkpoints(folder: Path) -> dict[str, bytes]:
    return weights(trainer(max_iter=2).fit(X, Y, resume_from=folder))


#: Functions that write files, and functions that read them.
WRITERS: tuple[tuple[str, Callable, Callable], ...] = (
    ("model.zip", saving.save, _read_saved),
    ("saved", saving.save, _read_saved),
    ("graphs", lambda estimator, folder: estimator.save_onnx_graph(folder), _read_graph),
    ("checkpoints", _write_checkpoints, _read_checkpoints),
)


@contextmanager
def _no_space(at: int) -> Iterator[Faults]:
    """Let calls that need disk space fail from number ``at`` on."""

    def strike(name, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    with pytest.MonkeyPatch.context() as patch:
        yield Faults(patch, at, strike, lasting=True)


@contextmanager
def _small_files(size: int) -> Iterator[None]:
    """Limit the size of files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _attempt(draw: Random, number: int, folder: Path) -> End:
    name, write, read = WRITERS[number % len(WRITERS)]
    path, elsewhere = folder / name, folder / "elsewhere" / name
    elsewhere.parent.mkdir()
    old, new = trainer(max_iter=1).fit(X, Y), trainer(max_iter=2).fit(X, Y)
    with _no_space(at=10**9) as counted:
        write(new, elsewhere)
    write(old, path)
    before, after = read(path), read(elsewhere)
    real = number // len(WRITERS) % 2
    fault = _small_files(draw.randrange(1000)) if real else _no_space(draw.randint(1, 10**9 - counted.left))
    end = End(0)
    try:
        with fault:
            write(new, path)
    except OSError as error:
        assert error.errno in (errno.ENOSPC, errno.EFBIG), error
        assert os.strerror(error.errno) in str(error) and str(folder) in str(error), error
        end |= End.CLEAN
    try:
        found = read(path)
    except Exception as error:
        raise Lost(f"{name} cannot be read") from error
    if found not in (before, after):
        raise Lost(f"{name} is neither the old one nor the new one")
    write(new, path)
    assert read(path) == after
    return end | End.RIGHT


FAULT = Fault("disk full or file too large during the writing of models and checkpoints", _attempt, tries=64)
