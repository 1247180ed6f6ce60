"""Find the training that a call of ``fit`` is to resume."""

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
    """Return what it takes to resume a training.

    ``source`` is a saved file or folder, a folder of ``ModelCheckpoint``, or an interrupted estimator.
    """
    if not isinstance(source, str | os.PathLike):
        fitted = getattr(source, "_fitted", None)
        if not isinstance(fitted, FittedModel):
            raise SavedFileError(f"resume_from={source!r} is neither a path nor an estimator in training.")
        found, name = fitted.resumption, "The estimator"
    else:
        found, name = _last_of(Path(source)), str(source)
    if found is None:
        raise SavedFileError(
            f"{name} has a training that is over, with nothing left to resume. Go on from its weights "
            "with warm_start=True or partial_fit."
        )
    return found


def _last_of(path: Path) -> Resumption | None:
    """Return the resumption of a file, or of the one in a folder whose training is furthest."""
    if not path.is_dir() or is_saved(path):
        return resumption_of(read(path))
    for candidate in by_progress(path):
        with suppress(SavedFileError):  # a damaged one: the one before it is as good
            return resumption_of(read(candidate))
    raise SavedFileError(f"{path} has no training that can be resumed.")


def resumption_of(content: Content) -> Resumption | None:
    """Return what it takes to resume the training of a file, None where it is over."""
    found = Decoder(TYPES, content.files, ()).decode(record_of(content)["resumption"])
    if found is not None and not isinstance(found, Resumption):
        raise SavedFileError("Its record is not that of a training.")
    return found


def record_of(content: Content) -> dict[str, Any]:
    """Return the record of a file, of all its parts."""
    record = content.manifest["record"]
    if {*record} != {*PARTS} or not isinstance(record["parameters"], dict):
        raise SavedFileError(f"Its record must have {sorted(PARTS)}, and has {sorted(record)}.")
    return record
