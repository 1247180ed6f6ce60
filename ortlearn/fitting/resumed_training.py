"""Find the training that a call of ``fit`` resumes, and compare it with the call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..exceptions import ResumedWarning, SavedFileError, warn_user
from ..saving.decoder import Decoder
from ..saving.files import SUFFIX, Content, read
from ..saving.summaries import by_progress, is_saved
from . import fingerprint
from .fitted_model import FittedModel
from .resumption import Resumption
from .saved_types import TYPES
from .start import Start

__all__ = ["checked_parameters", "find_resumption", "record_of", "resumed_start"]

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
    raise SavedFileError(f"{path} has no training that can be resumed: {_reason(path)}")


def _reason(folder: Path) -> str:
    """Return why a folder has no training to resume, and what to do."""
    reasons = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            resumption_of(read(path))
        except (OSError, SavedFileError) as error:
            text = str(error)
            reasons.append(text if str(path) in text else f"{path}: {text}")
    if reasons:
        return (
            f"{' '.join(reasons)} Restore the file from a copy, pass another folder, or remove the file to "
            "train from the beginning."
        )
    model = next(folder.glob("*.onnx"), None)
    only = (
        ""
        if model is None
        else f", only ONNX models such as {model.name}, which lack the state of a training"
    )
    return f"it has no saved estimators ({SUFFIX}){only}. Pass a file or a folder of ModelCheckpoint."


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


def checked_parameters(resumption: Resumption, found: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprint of the parameters, or raise an error if some differ.

    A seed of None takes the stored one; a generator may also be in the state after the draws.
    """
    known = {name: text for name, text in resumption.parameters.items() if name not in fingerprint.WITH_DATA}
    if found["random_state"] in ("None", resumption.drawn):
        found = {**found, "random_state": known.get("random_state", found["random_state"])}
    fingerprint.check(found, known, bool(resumption.data))
    return {**found, **known}


def resumed_start(resumption: Resumption, start: Start, found: Mapping[str, str]) -> Start:
    """Return a start with the original starting weights, or raise an error if model or data differ."""
    if resumption.data:
        fingerprint.check(found, resumption.data)
    else:
        _check_digest(resumption, start, found)
    weights = resumption.weights
    return replace(start, weights=weights, state=replace(start.state, anchor=weights))


def _check_digest(resumption: Resumption, start: Start, found: Mapping[str, str]) -> None:
    """Check graph and samples of a file of version 0.2.0, and warn of what it lacks."""
    buffer = resumption.parameters.get("shuffle_buffer", "None")
    fingerprint.check(found, {"shuffle_buffer": buffer}, is_complete=False)
    if fingerprint.digest_of(start) != resumption.digest:
        raise SavedFileError(
            "The training to resume has another model or other samples: pass the original estimator, "
            "samples, labels and weights, and use the same versions of packages."
        )
    warn_user(
        "The training was begun with version 0.2.0, whose files do not contain random_state, parameters "
        "of the estimator, validation data, and the scale of sample_weight: make sure that they are the "
        "original ones. Files of the resumed training contain them.",
        ResumedWarning,
    )
