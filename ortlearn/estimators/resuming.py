"""Find the training that a call of ``fit`` resumes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..exceptions import SavedFileError
from ..saving.decoder import Decoder
from ..saving.files import Content, read
from ..saving.summaries import by_progress, is_saved
from .fitted_model import FittedModel
from .resumption import Resumption
from .saved_types import TYPES

__all__ = ["find_resumption", "record_of"]

#: Parts of the record of an estimator.
PARTS = ("parameters", "problem", "features", "weights", "state", "resumption")


def find_resumption(source: Any) -> Resumption:
    """Return the training to resume from a file, a folder, or an interrupted estimator."""
    if not isinstance(source, str | os.PathLike):
        fitted = getattr(source, "_fitted", None)
        if not isinstance(fitted, FittedModel):
            raise SavedFileError(_without_training(source))
        resumption, name = fitted.resumption, "The estimator"
    else:
        resumption, name = _last_of(Path(source)), str(source)
    if resumption is None:
        raise SavedFileError(
            f"{name} has a finished training, which cannot be resumed. Continue from its weights with "
            "warm_start=True or partial_fit."
        )
    return resumption


def _without_training(source: Any) -> str:
    """Return the message for an object that has no training."""
    if not hasattr(source, "get_trained_onnx"):
        return f"resume_from={source!r} is neither a path nor an estimator in training."
    return (
        f"The {type(source).__name__} of resume_from has no training to resume: none was begun, or it ended "
        "while samples were counted, or before the first batch (on a cluster, the first round) was complete. "
        "Call the method without resume_from, which trains from the beginning."
    )


def _last_of(path: Path) -> Resumption | None:
    """Return the training of a file, or the one with the most progress in a folder of checkpoints."""
    if not path.is_dir() or is_saved(path):
        return resumption_of(read(path))
    for candidate in by_progress(path):
        with suppress(SavedFileError):  # skip damaged files
            return resumption_of(read(candidate))
    raise SavedFileError(f"{path} has no training that can be resumed.")


def resumption_of(content: Content) -> Resumption | None:
    """Return the training in a file, or None if it is finished."""
    resumption = Decoder(TYPES, content.files, ()).decode(record_of(content)["resumption"])
    if resumption is not None and not isinstance(resumption, Resumption):
        raise SavedFileError("Its record of the training has the wrong type.")
    return resumption


def record_of(content: Content) -> dict[str, Any]:
    """Return the record of a file, after a check of its parts."""
    record = content.manifest["record"]
    if {*record} != {*PARTS} or not isinstance(record["parameters"], dict):
        raise SavedFileError(f"Its record must have {sorted(PARTS)}, and has {sorted(record)}.")
    return record
