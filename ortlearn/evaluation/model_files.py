"""Load the model of a file: ONNX, scikit-learn as skops writes it, or a saved estimator; never pickle."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..exceptions import OmittedWarning, SavedFileError, WriteBackError
from ..saving import load, sklearn_objects
from ..saving.summaries import is_saved
from .messages import check_installed, one_line, shown
from .predictions import Model

__all__ = ["ONNX", "SAVED", "SKOPS", "load_estimator", "load_model"]

ONNX, SKOPS, SAVED = ".onnx", ".skops", ".zip"
PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".p")


def load_model(path: str, trusted: Sequence[str] = ()) -> Model:
    """Return the model of an ``.onnx`` or ``.skops`` file, or the trained one of a saved estimator.

    ``trusted`` are types that a scikit-learn model may contain besides those that skops trusts.
    """
    suffix = Path(path).suffix.lower()
    if suffix in PICKLES:
        raise ValueError(
            f"{path}: pickle and joblib files are not read, because reading one runs the code that it holds. "
            "Save the model with skops.io.dump(model, 'model.skops'), or as ONNX."
        )
    if is_saved(path):
        return _load_saved(path, trusted)
    if not suffix and not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or folder", path)
    if suffix not in (ONNX, SKOPS, SAVED):
        raise ValueError(
            f"{path}: a model must be an {ONNX}, {SKOPS} or {SAVED} file, or the folder of a saved estimator."
        )
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file", path)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory", path)
    if suffix == SKOPS:
        from .sklearn_model import SklearnModel

        return SklearnModel(load_estimator(path, trusted), path)
    from .onnx_model import OnnxModel

    return OnnxModel(path, path)


def _load_saved(path: str, trusted: Sequence[str]) -> Model:
    """Return the trained scikit-learn model of a saved estimator, or the ONNX model if it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OmittedWarning)
        estimator = load(path, trusted)
    try:
        if not hasattr(estimator, "to_sklearn"):  # intervals and sets are no scikit-learn models
            raise WriteBackError
        trained = estimator.to_sklearn()
    except WriteBackError:
        from .onnx_model import OnnxModel

        return OnnxModel(estimator.get_trained_onnx().SerializeToString(), path)
    from .sklearn_model import SklearnModel

    return SklearnModel(trained, path)


def load_estimator(path: str, trusted: Sequence[str] = ()) -> Any:
    """Return the estimator of a ``.skops`` file."""
    check_installed("skops", "cli", f"{SKOPS} files")
    try:
        estimator = sklearn_objects.load(Path(path).read_bytes(), trusted)
    except sklearn_objects.NotTrusted as error:
        options = " ".join(f"--trust {name}" for name in error.types)
        raise ValueError(
            f"{path} has types that skops does not trust: {shown(error.types)}. Loading the file can run "
            f"their code. If you know that it is safe: {options}"
        ) from error
    except SavedFileError as error:
        raise ValueError(f"{path} is not a {SKOPS} file, or damaged. {one_line(error)}") from error
    if not hasattr(estimator, "fit"):
        raise ValueError(f"{path} contains no scikit-learn model, but a {type(estimator).__name__}.")
    return estimator
