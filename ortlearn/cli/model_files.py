"""Load the model of a file: ONNX, scikit-learn as skops writes it, or a saved estimator; never pickle."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..exceptions import OmittedWarning, WriteBackError
from ..saving import load
from ..saving.summaries import is_saved
from .messages import check_installed, one_line, shown
from .predictions import Model

__all__ = ["ONNX", "SAVED", "SKOPS", "load_estimator", "load_model"]

ONNX, SKOPS, SAVED = ".onnx", ".skops", ".zip"
PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".p")


def load_model(path: str, trusted: Sequence[str] = ()) -> Model:
    """Return the model of an ``.onnx`` or ``.skops`` file, or the trained one of a saved estimator.

    ``trusted`` are types that a scikit-learn model may hold besides those that skops trusts.
    """
    suffix = Path(path).suffix.lower()
    if suffix in PICKLES:
        raise ValueError(
            f"{path}: pickle and joblib files are not read, because reading one runs the code that it holds. "
            "Where it was made, write it with skops.io.dump(model, 'model.skops'), or as ONNX."
        )
    if is_saved(path):
        return _load_saved(path, trusted)
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
    """Return the trained model of a saved estimator: scikit-learn's, or the ONNX model where it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OmittedWarning)
        estimator = load(path, trusted)
    try:
        trained = estimator.to_sklearn()
    except WriteBackError:
        from .onnx_model import OnnxModel

        return OnnxModel(estimator.get_trained_onnx().SerializeToString(), path)
    from .sklearn_model import SklearnModel

    return SklearnModel(trained, path)


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
