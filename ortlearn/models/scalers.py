"""Scalers: each column less a number, times another."""

from typing import Any

import numpy as np

from .base import ModelDefinition
from .constraints.signs import Positive
from .scores import Scores, transformation
from .writer import ModelWriter


def _undone(op: ModelWriter, model: Any, y: str, scale: Any, center: Any) -> str:
    """Append ``y * scale + center``, None for neither."""
    values = [np.ravel(value) for value in (scale, center) if value is not None]
    if values and np.abs(np.concatenate(values)).max() > np.finfo(op.float_dtype).max:
        what = f"it has values too large for {op.float_dtype}"
        raise op.fail(model, f"{what}: give y in other units, or dtype='float64'.")
    y = y if scale is None else op.Mul(y, np.asarray(scale, dtype=op.float_dtype))
    return y if center is None else op.Add(y, np.asarray(center, dtype=op.float_dtype))


class ScalerDefinition(ModelDefinition):
    """StandardScaler, RobustScaler and MaxAbsScaler: ``(x - center) / scale_``, each where it has one."""

    keeps_missing = True

    def _center(self, model: Any) -> tuple[str, Any]:
        """Return the attribute that is subtracted, and its value: None where nothing is."""
        name = "center_" if hasattr(model, "center_") else "mean_"
        return name, getattr(model, name, None) if getattr(model, "with_mean", True) else None

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        name, center = self._center(model)
        if center is not None:
            x = op.Sub(x, op.parameter(model, name, role="intercept"))
        if model.scale_ is not None:
            scale, centered = op.parameter(model, "scale_", role="scale", constraint=Positive()), x
            x = op.Div(x, scale)
            op.quotients[x] = centered, scale
        return transformation(op, x, model.n_features_in_)

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        return _undone(op, model, y, model.scale_, self._center(model)[1])

    def finish(self, model: Any) -> None:
        if hasattr(model, "var_") and model.scale_ is not None:
            model.var_ = model.scale_**2
        if hasattr(model, "max_abs_"):
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
