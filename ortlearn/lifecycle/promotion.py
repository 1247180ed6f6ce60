"""Put the result of an adaptation into a folder of versions."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from ..evaluation.data_files import Table
from ..evaluation.predictions import Model
from ..saving import sklearn_objects
from .cards import cards
from .results import Adaptation, onnx_bytes
from .samples import source_of
from .versions import ModelFolder

__all__ = ["model_contents", "promote", "stored"]


def promote(adaptation: Adaptation, folder: str | os.PathLike | ModelFolder) -> int:
    """Add the retrained model to a folder as a version, put it into use, and return its number.

    Parameters
    ----------
    adaptation : Adaptation
        Result of :func:`adapt` with the outcome ``"promoted"``.
    folder : str, os.PathLike or ModelFolder
        Folder of versions; it is created if it does not exist.

    Returns
    -------
    int
        Number of the version.

    Raises
    ------
    ValueError
        If the model is not to be promoted, if its inputs or outputs differ from those of the version in use,
        or if another process changes the folder.
    """
    if adaptation.outcome != "promoted":
        raise ValueError(f"The model is {adaptation.outcome}: {'; '.join(adaptation.reasons)}.")
    folder = folder if isinstance(folder, ModelFolder) else ModelFolder(folder)
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.locked():
        folder.switch(number := _added(folder, adaptation))
    return number


def stored(folder: ModelFolder, found: Adaptation) -> Adaptation:
    """Return the adaptation, whose new model is in the folder, in use if it is promoted."""
    if found.outcome == "kept":
        return found
    number = _added(folder, found)
    if found.outcome == "promoted":
        folder.switch(number)
    return replace(found, version=number)


def _added(folder: ModelFolder, found: Adaptation) -> int:
    """Add the retrained model of an adaptation to a folder."""
    verdict = found.verdict
    about = {
        "outcome": found.outcome,
        "candidate": found.candidate,
        "reasons": found.reasons,
        "metric": None if verdict is None else verdict.metric,
        "gain": None if verdict is None or not np.isfinite(verdict.gain) else verdict.gain,
    }
    return folder.add(found.onnx, _skops(found.new), cards(found), about)


def model_contents(model: Model, samples: Table | None) -> tuple[bytes, bytes | None]:
    """Return a model as the contents of an ONNX file and of a skops file, None if it has none."""
    return onnx_bytes(model, samples), _skops(model)


def _skops(model: Model) -> bytes | None:
    source = source_of(model)
    return sklearn_objects.dump(source)[0] if hasattr(source, "get_params") else None
