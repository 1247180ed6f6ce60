"""Comparison of the predictions of scikit-learn, of an estimator of ortlearn, and of an ONNX file."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session

__all__ = ["LARGE", "difference", "predictions", "run_file", "same_outputs"]

#: Methods whose results are compared, where both sides have them.
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
#: A difference between two computations of one model that is worth a word.
LARGE = 1e-3
#: Labels that may differ: samples where float32 rounds to the other side of a border.
FEW_LABELS = 0.02


def predictions(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Return the predictions of a fitted model by method."""
    found = {}
    for name in METHODS:
        method = getattr(model, name, None)
        if method is not None:
            try:
                found[name] = _array(method(X))
            except (NotImplementedError, ValueError) as error:
                if isinstance(error, ValueError) and "does not support" not in str(error):
                    raise
                continue  # not with these parameters
    return found


def _array(values: Any) -> np.ndarray:
    if isinstance(values, list):  # one array for each output
        arrays = [np.asarray(value) for value in values]
        alike = len({array.shape for array in arrays}) == 1
        return np.stack(arrays, axis=1) if alike else np.hstack(arrays)
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest value if it is above one.

    Of labels it is the share of those that differ, beyond the few that rounding explains.
    """
    if found.size != expected.size:
        return float("inf")
    found, expected = found.reshape(expected.shape), expected
    if expected.dtype.kind not in "fc" or found.dtype.kind not in "fciub":
        share = float(np.mean(found.astype(str) != expected.astype(str)))
        return share if share > FEW_LABELS else 0.0
    gaps = np.abs(found - expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    size = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
    worst = float(np.where(same, 0.0, gaps).max(initial=0.0))
    return worst / size if np.isfinite(worst) else float("inf")


def run_file(model: ModelProto, X: Any) -> list[np.ndarray]:
    """Return the outputs of an ONNX file on samples, or on the columns of a frame."""
    session = make_session(model, Device("cpu"))
    return [_array(value) for value in session.run(None, _feeds(session.get_inputs(), X))]


def _feeds(inputs: list, X: Any) -> dict[str, np.ndarray]:
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    feeds = {}
    for value in inputs:
        column = X if len(inputs) == 1 and value.name not in getattr(X, "columns", ()) else X[value.name]
        array = np.asarray(column)
        array = array.reshape(len(array), -1) if len(value.shape) == 2 else array
        feeds[value.name] = array.astype(kinds.get(value.type, object))
    return feeds


def same_outputs(found: dict[str, np.ndarray], outputs: list[np.ndarray], exact: bool = True) -> float:
    """Return the largest difference between predictions and the corresponding outputs of a file.

    Each prediction is compared with the output that is closest to it: files name and order outputs
    as they like. Raw scores may be no output of the file; predictions and probabilities must be.
    """
    gaps = {}
    for name, values in found.items():
        fitting = [
            difference(form, values)
            for output in outputs
            if output.size == values.size
            for form in ((output, output.swapaxes(0, 1)) if output.ndim == 3 else (output,))
        ]
        if fitting:
            gaps[name] = min(fitting)
    required = {"predict", "transform", "predict_proba"} & gaps.keys()
    if found.keys() == {"score_samples"}:
        required = found.keys() & gaps.keys()
    if not required:
        return float("inf")
    return max(gaps[name] for name in required)
