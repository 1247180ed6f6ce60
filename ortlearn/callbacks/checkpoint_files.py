"""The files of checkpoints: their names, and what is written in them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import joblib
import onnx

from .atomic import write_atomically

__all__ = ["checkpoint_paths", "read_value", "remove_checkpoint", "write_estimator", "write_model"]

PATTERN = "epoch-*.onnx"
#: Keys of the metadata of a checkpoint begin so.
PREFIX = "ortlearn."
#: What an estimator in training has of its callbacks and of those around it.
OF_CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")


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


def write_model(path: Path, model: onnx.ModelProto, record: dict[str, Any]) -> None:
    """Write a model, with what was measured in its metadata.

    Parameters
    ----------
    path : pathlib.Path
        File.
    model : onnx.ModelProto
        Model; the measured values are written into it.
    record : dict
        Epoch, losses, score and rate; None where nothing was measured.
    """
    for key, value in record.items():
        if value is not None:
            model.metadata_props.add(key=PREFIX + key, value=repr(value))
    write_atomically(path, lambda file: file.write(model.SerializeToString()))


def write_estimator(path: Path, estimator: Any) -> None:
    """Write a fitted estimator, without its callbacks.

    Parameters
    ----------
    path : pathlib.Path
        File.
    estimator : estimator
        Fitted; it is not changed.
    """
    estimator = copy.copy(estimator)
    for name in OF_CALLBACKS:
        estimator.__dict__.pop(name, None)
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
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    return float(metadata[PREFIX + key]) if PREFIX + key in metadata else None


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, and the estimator beside it.

    Parameters
    ----------
    path : pathlib.Path
        ONNX file.
    """
    path.with_suffix(".joblib").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
