"""Load the model of a file: ONNX, or scikit-learn as skops writes it; never pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .messages import check_installed, one_line, shown
from .predictions import Model

__all__ = ["ONNX", "SKOPS", "load_estimator", "load_model"]

ONNX, SKOPS = ".onnx", ".skops"
PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".p")


def load_model(path: str, trusted: Sequence[str] = ()) -> Model:
    """Return the model of an ``.onnx`` or ``.skops`` file; ``trusted`` are types that a .skops file may hold.

    Raises
    ------
    ValueError
        If the file has another format, or types that are not trusted.
    """
    suffix = Path(path).suffix.lower()
    if suffix in PICKLES:
        raise ValueError(
            f"{path}: pickle and joblib files are not read, because reading one runs the code that it holds. "
            "Where it was made, write it with skops.io.dump(model, 'model.skops'), or as ONNX."
        )
    if suffix not in (ONNX, SKOPS):
        raise ValueError(f"{path}: a model must be an {ONNX} or a {SKOPS} file.")
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file", path)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory", path)
    if suffix == SKOPS:
        from .sklearn_model import SklearnModel

        return SklearnModel(load_estimator(path, trusted), path)
    from .onnx_model import OnnxModel

    return OnnxModel(path, path)


def load_estimator(path: str, trusted: Sequence[str] = ()) -> Any:
    """Return the estimator of a ``.skops`` file."""
    check_installed("skops", "cli", f"{SKOPS} files")
    from skops import io

    content = Path(path).read_bytes()
    try:
        found = io.get_untrusted_types(data=content)
    except Exception as error:  # whatever a damaged archive leads to
        raise ValueError(f"{path} is not a {SKOPS} file: {one_line(error)}") from error
    unknown = sorted(set(found) - set(trusted))
    if unknown:
        options = " ".join(f"--trust {name}" for name in unknown)
        raise ValueError(
            f"{path} has types that skops does not trust: {shown(unknown)}. Loading the file can run their "
            f"code; where you know that it is safe: {options}"
        )
    try:
        estimator = io.loads(content, trusted=list(found))
    except Exception as error:
        raise ValueError(f"{path} cannot be loaded: {type(error).__name__}: {one_line(error)}") from error
    if not hasattr(estimator, "fit"):
        raise ValueError(f"{path} has no scikit-learn model, but a {type(estimator).__name__}.")
    return estimator
