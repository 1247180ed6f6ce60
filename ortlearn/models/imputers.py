"""Imputers of missing numbers, and indicators of where they are."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .base import ModelDefinition
from .forms import Form
from .scores import Scores, transformation
from .writer import ModelWriter

__all__ = ["MissingIndicatorDefinition", "SimpleImputerDefinition"]


def _is_missing(op: ModelWriter, model: Any, x: str) -> str:
    """Append where values are missing."""
    missing = float(model.missing_values)
    return op.IsNaN(x) if np.isnan(missing) else op.Equal(x, missing)


def _indicated(op: ModelWriter, indicator: Any, missing: str) -> str:
    """Append a column for each feature that an indicator has: 1 where it is missing."""
    return op.Gather(op.Cast(missing, to=op.elem_type), np.asarray(indicator.features_, np.int64), axis=1)


def _with_indicator(op: ModelWriter, model: Any, imputed: str, count: int, missing: str) -> Scores:
    """Return the imputed columns, followed by those of the indicator where the imputer has one."""
    if not model.add_indicator or not len(model.indicator_.features_):
        return transformation(op, imputed, count)
    columns = _indicated(op, model.indicator_, missing)
    return transformation(op, op.Concat(imputed, columns, axis=1), count + len(model.indicator_.features_))


class MissingIndicatorDefinition(ModelDefinition):
    """MissingIndicator: 1 where a value is missing, 0 elsewhere."""

    def covers(self, model: Any) -> bool:
        """Return whether a number stands for what is missing, and some column is reported."""
        return isinstance(model.missing_values, Real) and len(model.features_) > 0

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the columns."""
        return transformation(
            op, _indicated(op, model, _is_missing(op, model, x)), len(np.asarray(model.features_))
        )


@dataclass(frozen=True, eq=False)
class _Kept(Form):
    """Some entries of a vector.

    Attributes
    ----------
    kept : ndarray of bool
        Entries.
    """

    kept: np.ndarray

    def forward(self, value: np.ndarray) -> np.ndarray:
        """Return the entries."""
        return np.asarray(value[self.kept], dtype=np.float64)

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        """Return the vector; others stay as they are."""
        result = np.array(like, dtype=np.float64)
        result[self.kept] = value
        return result


def _given(model: Any) -> np.ndarray:
    """Return which columns an imputer gives: where fit has seen no value, there is none to impute."""
    return model.keep_empty_features | ~np.isnan(model.statistics_.astype(np.float64))


class SimpleImputerDefinition(ModelDefinition):
    """SimpleImputer of numbers: one value for each column."""

    def covers(self, model: Any) -> bool:
        """Return whether it imputes numbers, and a number stands for what is missing."""
        numbers = all(isinstance(value, Real) for value in (*model.statistics_, model.missing_values))
        return numbers and bool(_given(model).any())

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the columns without gaps."""
        kept = _given(model)
        missing = _is_missing(op, model, x)
        columns, count = np.flatnonzero(kept), len(kept)
        values = op.parameter(model, "statistics_", form=_Kept(kept))
        gaps = op.columns(missing, columns, count)
        imputed = op.Where(gaps, values, op.columns(x, columns, count))
        return _with_indicator(op, model, imputed, len(columns), missing)
