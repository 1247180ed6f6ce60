"""The files of checkpoints: names and content."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import onnx

from ..exceptions import warn_user
from ..graphs.external_tensors import reject_external
from ..graphs.files import write_together

__all__ = [
    "checkpoint_paths",
    "is_checkpoint",
    "prepare_path",
    "read_value",
    "remove_checkpoint",
    "state_path",
    "write_checkpoint",
    "written_by",
]

NAME = re.compile(r"epoch-(\d{6,})\.(?:onnx|zip)")
#: Prefix of the metadata keys of a checkpoint.
PREFIX = "ortlearn."
#: Key of the callback that wrote a checkpoint.
WRITER = PREFIX + "checkpoint"
#: Key of the last entry, the digest of all bytes before it.
DIGEST = PREFIX + "sha256"


def checkpoint_paths(folder: Path, nested: bool = True, suffix: str = ".onnx") -> list[Path]:
    """Return the files of a folder that have the names of checkpoints, ordered by run and epoch."""
    found = folder.rglob(f"epoch-*{suffix}") if nested else folder.glob(f"epoch-*{suffix}")
    epochs = {path: int(match[1]) for path in found if (match := NAME.fullmatch(path.name))}
    return sorted(epochs, key=lambda path: (path.parent, epochs[path]))


def state_path(path: Path) -> Path:
    """Return the path of the saved estimator that belongs to an ONNX file."""
    return path.with_suffix(".zip")


def write_checkpoint(
    path: Path, model: onnx.ModelProto, record: dict[str, Any], writer: str, state: bytes | None = None
) -> None:
    """Write a model, with the measured values in its metadata, and the estimator next to it."""
    reject_external(model)
    for key, value in record.items():
        if value is not None:
            model.metadata_props.add(key=PREFIX + key, value=repr(value))
    model.metadata_props.add(key=WRITER, value=writer)  # the last entry, which a truncated file lacks
    content = model.SerializeToString()
    write_state = None if state is None else lambda file: file.write(state)
    write_together({state_path(path): write_state, path: lambda file: file.write(content + _seal(content))})


def _seal(content: bytes) -> bytes:
    """Return the bytes that add the digest of a model to its metadata."""
    model = onnx.ModelProto()
    model.metadata_props.add(key=DIGEST, value=hashlib.sha256(content).hexdigest())
    return model.SerializeToString()


SEAL_SIZE = len(_seal(b""))
SEAL_START = _seal(b"")[: SEAL_SIZE - hashlib.sha256().digest_size * 2]


def is_checkpoint(path: Path) -> bool:
    """Return whether a file ends with a digest, as complete checkpoints do."""
    try:
        if not path.is_file():  # reading a pipe would block
            return False
        with open(path, "rb") as file:
            file.seek(-SEAL_SIZE, os.SEEK_END)
            return file.read().startswith(SEAL_START)
    except OSError:
        return False


def _metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a checkpoint; empty for a file that is damaged or gone."""
    try:
        if not path.is_file():
            raise ValueError("it is not a file")
        content = path.read_bytes()
        body, seal = content[:-SEAL_SIZE], content[-SEAL_SIZE:]
        if seal.startswith(SEAL_START) and seal != _seal(body):
            raise ValueError("its digest does not match its content")
        model = onnx.load_model_from_string(content)
        metadata = {entry.key: entry.value for entry in model.metadata_props}
        if WRITER not in metadata:
            raise ValueError("it is not a complete checkpoint")
        return metadata
    except FileNotFoundError:
        return {}  # removed by a training that keeps only its best checkpoints
    except Exception as error:  # errors of protobuf differ between its versions
        if path.is_symlink() or path.exists():
            warn_user(f"{path} is ignored, since it cannot be read or is damaged ({error}).", UserWarning)
        return {}


def read_value(path: Path, key: str) -> float | None:
    """Return a value from the metadata of a checkpoint."""
    value = _metadata(path).get(PREFIX + key)
    try:
        return None if value is None else float(value)
    except ValueError:
        warn_user(f"{path} is ignored, since its {key} is {value!r}.", UserWarning)
        return None


def written_by(paths: Iterable[Path]) -> str | None:
    """Return the name of the callback that wrote the first readable checkpoint."""
    return next((name for path in paths if (name := _metadata(path).get(WRITER))), None)


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint and its saved estimator."""
    state_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def prepare_path(path: Path, overwrite: bool) -> None:
    """Check that a checkpoint may be written; rename an existing file that is not a checkpoint."""
    present = [one for one in (path, state_path(path)) if os.path.lexists(one)]
    if path in present and not is_checkpoint(path):
        number = next(
            n for n in count(1) if not any(os.path.lexists(f"{one}.{n}") for one in (path, state_path(path)))
        )
        for one in present:
            os.rename(one, f"{one}.{number}")
        warn_user(f"{path} is not a valid checkpoint and was moved to {path.name}.{number}.", UserWarning)
    elif present and not overwrite:
        raise ValueError(
            f"{present[0]} already exists, from another training. Pass another folder to ModelCheckpoint, or "
            "overwrite=True to replace it."
        )
