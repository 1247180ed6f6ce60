"""Conversion by skl2onnx, without ortlearn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from onnx import ModelProto
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.base import is_classifier

__all__ = ["convert"]

_OPSETS = {"": 18, "ai.onnx.ml": 3}


def convert(model: Any, X: Any) -> ModelProto:
    """Return the ONNX model that skl2onnx writes for a fitted model."""
    options = {"zipmap": False} if is_classifier(model) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return to_onnx(model, initial_types=_types(X), options=options, target_opset=_OPSETS)
        except NameError:  # a classifier whose converter knows no such option
            return to_onnx(model, initial_types=_types(X), target_opset=_OPSETS)


def _types(X: Any) -> list[tuple[str, Any]]:
    if hasattr(X, "columns"):
        kinds = {name: X[name].dtype.kind for name in X.columns}
        return [
            (name, (FloatTensorType if kind == "f" else StringTensorType)([None, 1]))
            for name, kind in kinds.items()
        ]
    if np.asarray(X).dtype.kind == "O":
        return [("X", StringTensorType([None]))]
    return [("X", FloatTensorType([None, X.shape[1]]))]
