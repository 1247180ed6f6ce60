"""A folder for every training: those of clones are told apart, in one process and in several."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from .checkpoint_files import checkpoint_paths, written_by

__all__ = ["claim", "go_on", "make_folder", "release"]

#: What an estimator keeps of the folder it was trained in, where it is not the first: its name.
RUN = "_checkpoint_run"


def make_folder(folder: Path) -> Path:
    """Make a folder, and those around it.

    Parameters
    ----------
    folder : pathlib.Path
        Folder; it may exist.

    Returns
    -------
    pathlib.Path
        The same.

    Raises
    ------
    OSError
        If it cannot be made, as where a file has its name.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise type(error)(
            f"ModelCheckpoint cannot make the folder {folder}: there is a file of that name, or of that of a "
            "folder around it. Pass another folder."
        ) from error
    return folder


def claim(estimator: Any, folder: Path, writer: str) -> Path:
    """Return where a training that begins anew writes: the folder, or ``fit-2``, ``fit-3`` ... inside it.

    A folder is left to another training of the same callback that has written to it, or is about to.

    Parameters
    ----------
    estimator : estimator
        What is trained; it takes note of the name.
    folder : pathlib.Path
        First choice.
    writer : str
        Name of the callback, the same in every process.

    Returns
    -------
    pathlib.Path
        Folder, made; :func:`release` gives it back.
    """
    for number in count(1):
        name = "" if number == 1 else f"fit-{number}"
        chosen = make_folder(folder / name)
        try:
            _mark(chosen, writer).touch(exist_ok=False)
        except FileExistsError:
            continue
        earlier = checkpoint_paths(chosen, nested=False)
        if not earlier or written_by(earlier[0]) != writer:
            break
        release(chosen, writer)
    if name:
        setattr(estimator, RUN, name)
    return chosen


def go_on(estimator: Any, folder: Path) -> Path:
    """Return where an estimator writes that was trained before.

    Parameters
    ----------
    estimator : estimator
        What is trained.
    folder : pathlib.Path
        First choice.

    Returns
    -------
    pathlib.Path
        That folder, or the one inside it that was claimed.
    """
    return folder / getattr(estimator, RUN, "")


def release(folder: Path, writer: str) -> None:
    """Take note that a training is over.

    Parameters
    ----------
    folder : pathlib.Path
        Where it wrote.
    writer : str
        As for :func:`claim`.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        _mark(folder, writer).unlink()


def _mark(folder: Path, writer: str) -> Path:
    """Return the file that is there while a training writes."""
    return folder / f".{writer}.run"
