"""Scalers: each column less a number, times another."""

from __future__ import annotations

from typing import Any

from .base import ModelDefinition
from .constraints.signs import Positive
from .scores import Scores, transformation
from .writer import ModelWriter

__all__ = [
    "MaxAbsScalerDefinition",
    "MinMaxScalerDefinition",
    "RobustScalerDefinition",
    "StandardScalerDefinition",
]


def _centered(op: ModelWriter, model: Any, x: str, center: str, scale: str) -> Scores:
    """Append ``(x - center) / scale``, each where the scaler has it."""
    if getattr(model, center, None) is not None:
        x = op.Sub(x, op.parameter(model, center, role="intercept"))
    if getattr(model, scale, None) is not None:
        x = op.Div(x, op.parameter(model, scale, role="scale", constraint=Positive()))
    return transformation(op, x, model.n_features_in_)


class StandardScalerDefinition(ModelDefinition):
    """StandardScaler."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the scaled columns."""
        return _centered(op, model, x, "mean_" if model.with_mean else "", "scale_")

    def finish(self, model: Any) -> None:
        """Make the variances those of the scales."""
        if model.scale_ is not None:
            model.var_ = model.scale_**2


class RobustScalerDefinition(ModelDefinition):
    """RobustScaler."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the scaled columns."""
        return _centered(op, model, x, "center_", "scale_")


class MaxAbsScalerDefinition(ModelDefinition):
    """MaxAbsScaler."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the scaled columns."""
        return _centered(op, model, x, "", "scale_")

    def finish(self, model: Any) -> None:
        """Make the largest values those of the scales."""
        model.max_abs_ = model.scale_.copy()


class MinMaxScalerDefinition(ModelDefinition):
    """MinMaxScaler: ``x * scale_ + min_``, cut off at the ends of the range where it clips."""

    keeps_missing = True

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the scaled columns."""
        x = op.Mul(x, op.parameter(model, "scale_", role="scale", constraint=Positive()))
        x = op.Add(x, op.parameter(model, "min_", role="intercept"))
        if model.clip:
            low, high = map(float, model.feature_range)
            x = op.Max(op.Min(x, high), low)
        return transformation(op, x, model.n_features_in_)
