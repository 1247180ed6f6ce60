"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx.external_data_helper

__all__ = ["remove_hidden_files", "save_model", "write_atomically", "write_together"]

Write = Callable[[BinaryIO], object]

#: A name that nobody can guess, and a new file: what is there already, be it a link, is an error.
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
HIDDEN = ".ortlearn-"
#: Bytes that a protobuf message can have, and some for the graph.
MAX_MESSAGE = 2**31 - 2**24
#: What file systems answer that cannot sync a folder.
CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)


def save_model(model: onnx.ModelProto, path: str | Path) -> None:
    """Write an ONNX model to a file."""
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) > MAX_MESSAGE:
        _save_apart(model, Path(os.path.realpath(path)))
        return
    kind = onnx.serialization.registry.get_format_from_file_extension(Path(path).suffix) or "protobuf"
    content = onnx.serialization.registry.get(kind).serialize_proto(model)
    write_atomically(path, lambda file: file.write(content))


def _save_apart(model: onnx.ModelProto, path: Path) -> None:
    """Write a model and the values of its initializers as two files."""
    data = path.with_name(f"{path.name}.data")
    small = onnx.ModelProto()
    small.CopyFrom(model)
    contents, offset = [], 0
    for tensor in small.graph.initializer:
        if tensor.raw_data:
            contents.append(tensor.raw_data)
            onnx.external_data_helper.set_external_data(tensor, data.name, offset, len(tensor.raw_data))
            tensor.ClearField("raw_data")
            offset += len(contents[-1])
    write_together(
        {
            data: lambda file: file.writelines(contents),
            path: lambda file: file.write(small.SerializeToString()),
        }
    )


def write_atomically(path: str | Path, write: Write) -> None:
    """Write a file under another name, then rename it: a reader sees the old file or the new one."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            write(file)
    else:
        write_together({path: write})


def write_together(files: dict[Path, Write | None]) -> None:
    """Write files of one folder that belong together: all are complete before the first one is seen."""
    last = list(files)[-1]
    spares: dict[Path, Path] = {}
    try:
        with ExitStack() as stack:
            hidden = {p: stack.enter_context(_hidden(p, write)) for p, write in files.items() if write}
            _exchange(hidden, list(files), spares)
            _sync(last.parent)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(error.errno, f"Cannot write {last}: {reason}. Earlier files are kept.") from error
    finally:
        for spare in spares.values():
            _remove(spare)


def remove_hidden_files(folder: Path) -> None:
    """Remove what a killed process left half-written."""
    for path in folder.glob(f"{HIDDEN}{'[0-9a-f]' * 16}.tmp"):
        _remove(path)


def _hidden_name(folder: Path) -> Path:
    return folder / f"{HIDDEN}{secrets.token_hex(8)}.tmp"


def _create(folder: Path) -> tuple[int, Path]:
    """Return a new file, open, and its name."""
    while True:
        hidden = _hidden_name(folder)
        with suppress(FileExistsError):
            return os.open(hidden, NEW_FILE, 0o666), hidden


@contextmanager
def _hidden(path: Path, write: Write) -> Iterator[Path]:
    """Write the content of a file under another name, and remove that in the end."""
    descriptor, hidden = _create(path.parent)
    try:
        with open(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):  # a file that others may not read stays so
            old = os.lstat(path)
            if stat.S_ISREG(old.st_mode):
                os.chmod(hidden, stat.S_IMODE(old.st_mode))
        yield hidden
    finally:
        _remove(hidden)


def _exchange(hidden: dict[Path, Path], paths: list[Path], spares: dict[Path, Path]) -> None:
    """Give complete files their names; ``spares`` takes the names under which old ones are put aside.

    At no moment is the last one there beside others of another call, whenever the process dies.
    """
    *first, last = paths
    try:
        if first and last.is_file() and not last.is_symlink():
            with suppress(OSError):  # a disk without hard links: from the last rename on there is no way back
                os.link(last, spare := _hidden_name(last.parent))
                spares[last] = spare
        for path in first:
            if os.path.lexists(path):
                spares[path] = _hidden_name(path.parent)
                os.replace(path, spares[path])
        for path in reversed(paths) if os.path.lexists(last) else paths:
            if path in hidden:
                os.replace(hidden[path], path)
    except BaseException:
        if hidden[last].exists() or last in spares:
            for path in hidden.keys() - spares.keys():
                if not hidden[path].exists():  # it has its name, which nothing had before
                    _remove(path)
            for path, spare in spares.items():
                with suppress(FileNotFoundError):
                    os.replace(spare, path)
        raise


def _sync(folder: Path) -> None:
    """Make new names last through a loss of power, where the system can."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
