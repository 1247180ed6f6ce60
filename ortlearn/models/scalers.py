"""Scalers: each column less a number, times another."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import ModelDefinition
from .constraints.signs import Positive
from .scores import Scores, transformation
from .writer import ModelWriter


def _centered(op: ModelWriter, model: Any, x: str, center: str, scale: str) -> Scores:
    """Append ``(x - center) / scale``, each where the scaler has it."""
    if getattr(model, center, None) is not None:
        x = op.Sub(x, op.parameter(model, center, role="intercept"))
    if getattr(model, scale, None) is not None:
        x = op.Div(x, op.parameter(model, scale, role="scale", constraint=Positive()))
    return transformation(op, x, model.n_features_in_)


def _undone(op: ModelWriter, model: Any, y: str, scale: Any, center: Any) -> str:
    """Append ``y * scale + center``, None for neither."""
    values = [np.ravel(value) for value in (scale, center) if value is not None]
    if values and np.abs(np.concatenate(values)).max() > np.finfo(op.float_dtype).max:
        raise op.fail(
            model, f"it has values too large for {op.float_dtype}: give y in other units, or dtype='float64'."
        )
    y = y if scale is None else op.Mul(y, np.asarray(scale, dtype=op.float_dtype))
    return y if center is None else op.Add(y, np.asarray(center, dtype=op.float_dtype))


class StandardScalerDefinition(ModelDefinition):
    """StandardScaler."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return _centered(op, model, x, "mean_" if model.with_mean else "", "scale_")

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        return _undone(op, model, y, model.scale_, model.mean_ if model.with_mean else None)

    def finish(self, model: Any) -> None:
        if model.scale_ is not None:
            model.var_ = model.scale_**2


class RobustScalerDefinition(ModelDefinition):
    """RobustScaler."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return _centered(op, model, x, "center_", "scale_")

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        return _undone(op, model, y, model.scale_, model.center_)


class MaxAbsScalerDefinition(ModelDefinition):
    """MaxAbsScaler."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        return _centered(op, model, x, "", "scale_")

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        return _undone(op, model, y, model.scale_, None)

    def finish(self, model: Any) -> None:
        model.max_abs_ = model.scale_.copy()


class MinMaxScalerDefinition(ModelDefinition):
    """MinMaxScaler: ``x * scale_ + min_``, cut off at the ends of the range where it clips."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        x = op.Mul(x, op.parameter(model, "scale_", role="scale", constraint=Positive()))
        x = op.Add(x, op.parameter(model, "min_", role="intercept"))
        if model.clip:
            low, high = map(float, model.feature_range)
            x = op.Max(op.Min(x, high), low)
        return transformation(op, x, model.n_features_in_)

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        return _undone(op, model, y, 1.0 / model.scale_, -model.min_ / model.scale_)
