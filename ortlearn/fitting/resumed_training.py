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
from ..training.state import TrainingState
from . import fingerprint_texts
from .fingerprint import Fingerprint
from .fitted_model import FittedModel
from .former_records import upgraded
from .start import Start

__all__ = ["checked_parameters", "find_resumption", "record_of", "resumed_start", "state_of"]

#: Parts of the record of an estimator.
PARTS = {"parameters", "problem", "features", "state"}
#: Further parts of files of version 0.2.0.
FORMER_PARTS = {"weights", "resumption"}


def find_resumption(source: Any) -> TrainingState:
    """Return the state of the training to resume, from a file, a folder, or an interrupted estimator."""
    if not isinstance(source, str | os.PathLike):
        fitted = getattr(source, "_fitted", None)
        if not isinstance(fitted, FittedModel):
            raise SavedFileError(_without_training(source))
        state, name = fitted.state, "The estimator"
    else:
        state, name = _last_of(Path(source)), str(source)
    if state.fingerprint is None:
        raise SavedFileError(
            f"{name} has a finished training, which cannot be resumed. Continue from its weights with "
            "warm_start=True or partial_fit."
        )
    return state


def _without_training(source: Any) -> str:
    """Return the message for an object that has no training."""
    if not hasattr(source, "get_trained_onnx"):
        return f"resume_from={source!r} is neither a path nor an estimator in training."
    return (
        f"The {type(source).__name__} of resume_from has no training to resume: none was begun, or it ended "
        "while samples were counted, or before the first batch (on a cluster, the first round) was complete. "
        "Call the method without resume_from, which trains from the beginning."
    )


def _last_of(path: Path) -> TrainingState:
    """Return the training of a file, or the one with the most progress in a folder of checkpoints."""
    if not path.is_dir() or is_saved(path):
        return _state_in(path)
    for candidate in by_progress(path):
        with suppress(SavedFileError):  # skip damaged files
            return _state_in(candidate)
    raise SavedFileError(f"{path} has no training that can be resumed: {_reason(path)}")


def _state_in(path: Path) -> TrainingState:
    """Return the state of the training in a file."""
    from .saved_types import TYPES  # imports the classes of all records

    content = read(path)
    return state_of(record_of(content), Decoder(TYPES, content.files, ()))


def _reason(folder: Path) -> str:
    """Return why a folder has no training to resume, and what to do."""
    reasons = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            _state_in(path)
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


def state_of(record: Mapping[str, Any], decoder: Decoder) -> TrainingState:
    """Return the state of the training in the record of a file."""
    state = decoder.decode(record["state"])
    if "resumption" in record:  # of version 0.2.0
        state = upgraded(state, decoder.decode(record["weights"]), decoder.decode(record["resumption"]))
    if not isinstance(state, TrainingState) or not isinstance(state.fingerprint, Fingerprint | None):
        raise SavedFileError("Its record of the training has the wrong type.")
    return state


def record_of(content: Content) -> dict[str, Any]:
    """Return the record of a file, after a check of its parts."""
    record = content.manifest["record"]
    if {*record} - FORMER_PARTS != PARTS or not isinstance(record["parameters"], dict):
        raise SavedFileError(f"Its record must have {sorted(PARTS)}, and has {sorted(record)}.")
    return record


def checked_parameters(known: Fingerprint, found: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprint of the parameters, or raise an error if some differ.

    A seed of None takes the stored one; a generator may also be in the state after the draws.
    """
    texts = {name: text for name, text in known.parameters.items() if name not in fingerprint_texts.WITH_DATA}
    if found["random_state"] in ("None", known.drawn):
        found = {**found, "random_state": texts.get("random_state", found["random_state"])}
    fingerprint_texts.check(found, texts, bool(known.data))
    return {**found, **texts}


def resumed_start(resumed: TrainingState, start: Start, found: Mapping[str, str]) -> Start:
    """Return a start with the original starting weights, or raise an error if model or data differ."""
    known = resumed.fingerprint
    if known.data:
        fingerprint_texts.check(found, known.data)
    else:
        _check_digest(known, start, found)
    weights = resumed.anchor or start.weights
    return replace(start, state=replace(start.state, weights=weights, anchor=weights))


def _check_digest(known: Fingerprint, start: Start, found: Mapping[str, str]) -> None:
    """Check graph and samples of a file of version 0.2.0, and warn of what it lacks."""
    given = {name: known.parameters.get(name, "None") for name in ("batch_size", "shuffle_buffer")}
    fingerprint_texts.check(found, given, is_complete=False)
    if fingerprint_texts.digest_of(start) != known.digest:
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
