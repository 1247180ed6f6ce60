"""Imputers of missing numbers, and indicators of where they are."""

from typing import Any

import numpy as np
from onnx import TensorProto

from .base import ModelDefinition
from .columns import Columns
from .encoders import as_text, category_numbers
from .forms import Kept
from .scores import Scores, joined, transformation
from .writer import ModelWriter


def _is_missing(op: ModelWriter, model: Any, x: str) -> str:
    """Append where values are missing."""
    marker = as_text(model.missing_values)  # what stands for a missing text in a graph
    if op.has_text(x):
        return op.Cast(category_numbers(op, x, [marker]), to=TensorProto.BOOL)
    if marker == "nan":
        return op.IsNaN(x)
    return op.Equal(x, float(model.missing_values))


def _indicated(op: ModelWriter, indicator: Any, x: str | Columns) -> str:
    """Append a column for each feature that an indicator has: 1 where it is missing."""
    features = [int(feature) for feature in indicator.features_]
    if isinstance(x, Columns):
        found = [_is_missing(op, indicator, op.column(x, feature)) for feature in features]
        return op.Cast(joined(op, found), to=op.elem_type)
    missing = op.Cast(_is_missing(op, indicator, x), to=op.elem_type)
    return op.Gather(missing, np.asarray(features, np.int64), axis=1)


class MissingIndicatorDefinition(ModelDefinition):
    """MissingIndicator: 1 where a value is missing, 0 elsewhere."""

    untrained = "it has no parameters"
    takes_columns = True

    def covers(self, model: Any) -> bool:
        return len(model.features_) > 0

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        x = x if op.has_text(x) else op.matrix(x)
        return transformation(op, _indicated(op, model, x), len(model.features_))


def _kept(model: Any) -> np.ndarray:
    """Return which columns an imputer gives: it drops those in which fit has seen no value."""
    empty = [isinstance(value, float) and value != value for value in model.statistics_.tolist()]
    return model.keep_empty_features | ~np.array(empty, dtype=bool)


class SimpleImputerDefinition(ModelDefinition):
    """SimpleImputer: one value for each column."""

    takes_columns = True

    def fills_gaps_only(self, model: Any) -> bool:
        return getattr(model, "indicator_", None) is None and bool(_kept(model).all())

    def covers(self, model: Any) -> bool:
        return bool(_kept(model).any())

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        kept = _kept(model)
        columns, count = np.flatnonzero(kept), len(kept)
        texts = op.has_text(x)
        if texts:
            imputed: Any = Columns(tuple(_imputed_text(op, model, x, i) for i in columns.tolist()))
        else:
            x = op.matrix(x)
            gaps = op.columns(_is_missing(op, model, x), columns, count)
            values = op.parameter(model, "statistics_", form=Kept(kept))
            imputed = op.Where(gaps, values, op.columns(x, columns, count))
        if not model.add_indicator or not len(model.indicator_.features_):
            return transformation(op, imputed, len(columns))
        flags = _indicated(op, model.indicator_, x)
        width = len(columns) + len(model.indicator_.features_)
        if not texts:
            return transformation(op, op.Concat(imputed, flags, axis=1), width)
        added = tuple(op.column(flags, i) for i in range(width - len(columns)))
        return transformation(op, Columns((*imputed.tensors, *added)), width)


def _imputed_text(op: ModelWriter, model: Any, x: Columns, position: int) -> str:
    """Append a column of text without gaps."""
    column = op.column(x, position)
    if not op.has_text(column):
        raise op.fail(model, "it imputes text and numbers at once: use one imputer for each kind.")
    value = op.constant(np.array([[as_text(model.statistics_[position])]], dtype=object))
    imputed = op.Where(_is_missing(op, model, column), value, column)
    return op.set_type(imputed, TensorProto.STRING, (None, 1))
