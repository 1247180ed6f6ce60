"""Representation of estimators in texts and notebooks, with a short description of an ONNX model."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from .. import conversion
from ..exceptions import ConversionError

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["DisplayMixin"]

NAMES_SHOWN = 5


class DisplayMixin:
    """``repr`` and notebook diagram of an estimator that may wrap an ONNX model."""

    estimator: Any

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return BaseEstimator.__repr__(_described(self), N_CHAR_MAX)

    def _get_params_html(self, *args: Any, **kwargs: Any) -> Any:
        # The table of parameters in the diagram of scikit-learn 1.7 and later.
        return BaseEstimator._get_params_html(_described(self), *args, **kwargs)

    @available_if(lambda self: conversion.is_onnx_source(self.estimator))
    def _sk_visual_block_(self) -> Any:
        # scikit-learn shows other wrapped estimators itself.
        text = str(_described(self).estimator)
        return _visual_block_class()("parallel", [text], names=["estimator: ONNX model"], name_details=[text])


class _Description:
    """Replacement of an ONNX model in printed parameters."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _described(estimator: Any) -> Any:
    """Return a copy with a description in place of an ONNX model, or the estimator itself."""
    source = estimator.estimator
    is_model = type(source).__module__.partition(".")[0] == "onnx"
    if not (is_model or isinstance(source, bytes | bytearray)):
        return estimator
    described = copy.copy(estimator)
    described.estimator = _Description(_describe(source))
    return described


def _describe(source: ModelProto | bytes | bytearray) -> str:
    from ..onnx_files.loading import read_onnx

    size = f"{len(source)} bytes" if isinstance(source, bytes | bytearray) else ""
    try:
        return f"<ONNX model{size and f' of {size}'}: {_summary(read_onnx(source)[0])}>"
    except ConversionError:
        return f"<{size}, not an ONNX model>"


def _summary(model: ModelProto) -> str:
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = _names([value.name for value in graph.input if value.name not in weights])
    return f"{inputs} -> {_names([value.name for value in graph.output])}, {_count(len(graph.node), 'node')}"


def _names(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _visual_block_class() -> type:
    try:
        from sklearn.utils._repr_html.estimator import _VisualBlock  # scikit-learn 1.7 and later
    except ImportError:
        from sklearn.utils._estimator_html_repr import _VisualBlock
    return _VisualBlock
