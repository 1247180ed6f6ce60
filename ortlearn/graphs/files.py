"""Atomic writes: files are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import onnx.external_data_helper

from .external_tensors import external_initializers, source_files, stays_in, tensor_array, with_own_locations

__all__ = ["remove_hidden_files", "save_model", "write_atomically", "write_together"]

Write = Callable[[BinaryIO], object]

#: Flags of a temporary file: an existing file of that name, even a link, is an error.
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
HIDDEN = ".ortlearn-"
#: Largest size of a protobuf message in bytes, with a margin for the graph.
MAX_MESSAGE = 2**31 - 2**24
#: Errors of file systems that cannot sync a folder.
CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)


def save_model(model: onnx.ModelProto, path: str | Path) -> None:
    """Write an ONNX model to a file."""
    is_large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > MAX_MESSAGE
    if is_large or external_initializers(model):
        save_apart(model, Path(os.path.realpath(path)), is_large)
        return
    kind = onnx.serialization.registry.get_format_from_file_extension(Path(path).suffix) or "protobuf"
    content = onnx.serialization.registry.get(kind).serialize_proto(model)
    write_atomically(path, lambda file: file.write(content))


def save_apart(model: onnx.ModelProto, path: Path, is_large: bool) -> None:
    """Write a model, and the values of its initializers in another file; external ones of the folder stay."""
    small = onnx.ModelProto()
    small.CopyFrom(model)
    data, number = path.with_name(f"{path.name}.data"), 1
    while str(data) in source_files(model):  # which sessions read
        data, number = path.with_name(f"{path.name}.{number}.data"), number + 1
    contents: list[Any] = []
    offset = 0
    for tensor in small.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            if stays_in(tensor, path.parent):
                continue
            content: Any = memoryview(tensor_array(tensor)).cast("B")
        elif is_large and tensor.raw_data:
            content = tensor.raw_data
        else:
            continue
        contents.append(content)
        tensor.raw_data = b"-"  # which onnx asks for
        onnx.external_data_helper.set_external_data(tensor, data.name, offset, len(content))
        tensor.ClearField("raw_data")
        offset += len(content)
    small = with_own_locations(small)
    files: dict[Path, Write | None] = {data: lambda file: file.writelines(contents)} if contents else {}
    write_together({**files, path: lambda file: file.write(small.SerializeToString())})


def write_atomically(path: str | Path, write: Write) -> None:
    """Write a file under a temporary name, then rename it: readers see the old file or the new one."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            write(file)
    else:
        write_together({path: write})


def write_together(files: dict[Path, Write | None]) -> None:
    """Write files of one folder that belong together: all are complete before the first is visible."""
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
    """Remove temporary files of killed processes."""
    for path in folder.glob(f"{HIDDEN}{'[0-9a-f]' * 16}.tmp"):
        _remove(path)


def _hidden_name(folder: Path) -> Path:
    return folder / f"{HIDDEN}{secrets.token_hex(8)}.tmp"


def _create(folder: Path) -> tuple[int, Path]:
    """Create and open a file, and return it with its name."""
    while True:
        hidden = _hidden_name(folder)
        with suppress(FileExistsError):
            return os.open(hidden, NEW_FILE, 0o666), hidden


@contextmanager
def _hidden(path: Path, write: Write) -> Iterator[Path]:
    """Write the content of a file under a temporary name, which is removed in the end."""
    descriptor, hidden = _create(path.parent)
    try:
        with open(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):  # keep the permissions of the file
            old = os.lstat(path)
            if stat.S_ISREG(old.st_mode):
                os.chmod(hidden, stat.S_IMODE(old.st_mode))
        yield hidden
    finally:
        _remove(hidden)


def _exchange(hidden: dict[Path, Path], paths: list[Path], spares: dict[Path, Path]) -> None:
    """Rename complete files; ``spares`` gets the names under which old files are kept.

    If the process dies at any time, the last file is never next to files of another call.
    """
    *first, last = paths
    try:
        if first and last.is_file() and not last.is_symlink():
            with suppress(OSError):  # without hard links, the last rename cannot be undone
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
                if not hidden[path].exists():  # renamed; there was no file of that name
                    _remove(path)
            for path, spare in spares.items():
                with suppress(FileNotFoundError):
                    os.replace(spare, path)
        raise


def _sync(folder: Path) -> None:
    """Make new names durable, if the file system supports it."""
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
