"""The files of checkpoints: their names, and what is written in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import onnx

from .atomic import write_atomically

__all__ = [
    "checkpoint_paths",
    "read_value",
    "remove_checkpoint",
    "write_estimator",
    "write_model",
    "written_by",
]

PATTERN = "epoch-*.onnx"
#: Keys of the metadata of a checkpoint begin so.
PREFIX = "ortlearn."
#: Key of the callback that wrote a checkpoint.
WRITER = PREFIX + "checkpoint"


def checkpoint_paths(folder: Path, nested: bool = True) -> list[Path]:
    """Return the ONNX files of a folder, the runs one after the other, the epochs in order.

    Parameters
    ----------
    folder : pathlib.Path
        Where; it need not exist.
    nested : bool, default=True
        Whether to look into the folders inside it.

    Returns
    -------
    list of pathlib.Path
        Checkpoints.
    """
    return sorted(folder.rglob(PATTERN) if nested else folder.glob(PATTERN))


def write_model(path: Path, model: onnx.ModelProto, record: dict[str, Any], writer: str) -> None:
    """Write a model, with what was measured in its metadata.

    Parameters
    ----------
    path : pathlib.Path
        File.
    model : onnx.ModelProto
        Model; the measured values are written into it.
    record : dict
        Epoch, losses, score and rate; None where nothing was measured.
    writer : str
        Name of the callback.
    """
    model.metadata_props.add(key=WRITER, value=writer)
    for key, value in record.items():
        if value is not None:
            model.metadata_props.add(key=PREFIX + key, value=repr(value))
    write_atomically(path, lambda file: file.write(model.SerializeToString()))


def write_estimator(path: Path, estimator: Any) -> None:
    """Write a fitted estimator.

    Parameters
    ----------
    path : pathlib.Path
        File.
    estimator : estimator
        Fitted, without callbacks, as a hook gets it.
    """
    write_atomically(path, lambda file: joblib.dump(estimator, file))


def read_value(path: Path, key: str) -> float | None:
    """Return a value from the metadata of a checkpoint.

    Parameters
    ----------
    path : pathlib.Path
        File.
    key : str
        What was measured.

    Returns
    -------
    float or None
        None where it was not measured.
    """
    value = _metadata(path).get(PREFIX + key)
    return None if value is None else float(value)


def written_by(path: Path) -> str | None:
    """Return the name of the callback that wrote a checkpoint.

    Parameters
    ----------
    path : pathlib.Path
        File.

    Returns
    -------
    str or None
        None where it is not told.
    """
    return _metadata(path).get(WRITER)


def _metadata(path: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, and the estimator beside it.

    Parameters
    ----------
    path : pathlib.Path
        ONNX file.
    """
    path.with_suffix(".joblib").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
