"""Folders of trainings; clones, also in other processes, have separate folders."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import Any

from ..exceptions import ResumedWarning, warn_user
from ..graphs.files import remove_hidden_files
from .checkpoint_files import checkpoint_paths, is_checkpoint, written_by
from .locks import FolderInUse, RunLock

__all__ = ["RESUMED", "claim", "earlier_checkpoints", "folder_to_resume", "held_folder", "reopen", "release"]

#: Attribute of an estimator with the name of its subfolder, if it has one.
RUN = "_checkpoint_run"
#: Locks of the trainings of this process, by task and callback.
LOCKS: dict[tuple[Any, str], RunLock] = {}
#: Folders of resumed trainings of this process, by callback; they may end without a new file,
#: and clones do not use them.
RESUMED: defaultdict[str, set[Path]] = defaultdict(set)


def _make_folder(folder: Path, root: Path) -> None:
    """Create a folder with its parents; symbolic links below ``root`` are not followed."""
    if folder.resolve() != root.resolve() / folder.relative_to(root):
        raise OSError(f"ModelCheckpoint does not follow the symbolic link in {folder}. Pass another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise type(error)(
            f"ModelCheckpoint cannot create the folder {folder}, since it or one of its parents is a file. "
            "Pass another folder."
        ) from error
    except OSError as error:
        reason = f"{error.strerror}. Pass another folder."
        raise OSError(error.errno, f"ModelCheckpoint cannot create the folder {folder}: {reason}") from error


def _lock(folder: Path, root: Path, writer: str) -> RunLock:
    """Return a lock on a folder, which is created if missing and cleared of files of killed processes."""
    _make_folder(folder, root)
    lock = RunLock(folder, writer)
    remove_hidden_files(folder)
    return lock


def _in_use(folder: Path, error: FolderInUse) -> ValueError:
    return ValueError(
        f"Another training is writing to {folder} (process {error.process}). Wait until it ends, or pass "
        "another folder to ModelCheckpoint."
    )


def claim(estimator: Any, context: Any, root: Path, folder: Path, writer: str) -> Path:
    """Lock a folder for a new training: the folder itself, or ``fit-2``, ``fit-3`` ... inside it.

    Folders that another training of the same callback uses or has used are skipped.
    """
    for number in count(1):
        name = "" if number == 1 else f"fit-{number}"
        try:
            lock = _lock(folder / name, root, writer)
        except FolderInUse as error:
            if error.owner == writer:
                continue
            raise _in_use(folder / name, error) from None
        try:
            free = written_by(filter(is_checkpoint, checkpoint_paths(lock.folder, nested=False))) != writer
            free = free and lock.folder not in RESUMED[writer]
        except BaseException:
            lock.release()
            raise
        if free:
            break
        lock.release()
    LOCKS[context, writer] = lock
    if name:
        setattr(estimator, RUN, name)
    return lock.folder


def reopen(estimator: Any, context: Any, root: Path, folder: Path, writer: str) -> Path:
    """Lock the folder of an estimator that was already trained."""
    folder = folder / getattr(estimator, RUN, "")
    try:
        LOCKS[context, writer] = _lock(folder, root, writer)
    except FolderInUse as error:
        raise _in_use(folder, error) from None
    return folder


def earlier_checkpoints(folder: Path) -> tuple[list[Path], bool]:
    """Return the checkpoints in a folder, and whether it has saved estimators without one."""
    paths = checkpoint_paths(folder, nested=False)
    states = checkpoint_paths(folder, nested=False, suffix=".zip")
    models, valid = {path.stem for path in paths}, [path for path in paths if is_checkpoint(path)]
    for path in sorted({*paths} - {*valid}):
        warn_user(f"{path} is not a valid checkpoint and is not changed.", UserWarning)
    return valid, any(path.stem not in models for path in states)


def held_folder(context: Any, writer: str) -> Path:
    """Return the folder of a training."""
    lock = LOCKS.get((context, writer))
    if lock is None or not lock.is_held():
        raise RuntimeError(
            "ModelCheckpoint writes only in the process that called fit, during the call. This process was "
            "forked during the training, or the training is over."
        )
    return lock.folder


def folder_to_resume(context: Any, writer: str) -> Path | None:
    """Return the folder of a training if it has saved estimators; warn if it has only models."""
    folder = held_folder(context, writer)
    if any(folder.glob("*.zip")):
        RESUMED[writer].add(folder)
        return folder
    models = checkpoint_paths(folder, nested=False)
    if models:
        warn_user(
            f"{folder} has ONNX models of an earlier training ({models[-1].name}), but no saved estimator "
            "(.zip) to resume it from: the training begins anew, and replaces models of the same names. With "
            "with_estimator=True, ModelCheckpoint writes both.",
            ResumedWarning,
        )
    return None


def release(context: Any, writer: str) -> None:
    """Unlock the folder of a training."""
    lock = LOCKS.pop((context, writer), None)
    if lock is not None:
        lock.release()
