"""Imputers of missing values, and indicators of their positions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

from .base import ModelDefinition
from .columns import Columns
from .encoders import as_text, category_numbers
from .forms import Kept
from .kernels import products
from .scores import Scores, transformation
from .writer import ModelWriter

FAR = 1e200  # squared distance to a sample without a common value, larger than all others
TOUCHING = 1e-60  # smallest squared distance with a finite reciprocal root


def _is_missing(op: ModelWriter, model: Any, x: str) -> str:
    """Append the mask of missing values."""
    marker = as_text(model.missing_values)
    if op.has_text(x):
        return op.Cast(category_numbers(op, x, [marker]), to=TensorProto.BOOL)
    if marker == "nan":
        return op.IsNaN(x)
    return op.Equal(x, float(model.missing_values))


def _indicated(op: ModelWriter, indicator: Any, x: str | Columns) -> str:
    """Append a column for each feature of an indicator: 1 if it is missing."""
    features = [int(feature) for feature in indicator.features_]
    if not isinstance(x, Columns):
        return op.columns(op.ones_where(_is_missing(op, indicator, x)), features)
    found = [_is_missing(op, indicator, op.column(x, feature)) for feature in features or [0]]
    return op.columns(op.ones_where(op.joined(found)), range(len(features)), len(found))


class MissingIndicatorDefinition(ModelDefinition):
    """MissingIndicator: 1 for missing values, 0 for others."""

    untrained = "it has no parameters"
    takes_columns = True

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        x = x if op.has_text(x) else op.matrix(x)
        return transformation(op, _indicated(op, model, x), len(model.features_))


def _kept(model: Any) -> np.ndarray:
    """Return the mask of the columns that had values in the fit, which an imputer returns."""
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
        if op.has_text(x):
            imputed: Any = Columns(tuple(_imputed_text(op, model, x, i) for i in columns.tolist()))
        else:
            x = op.matrix(x)
            gaps = op.columns(_is_missing(op, model, x), columns, count)
            values = op.parameter(model, "statistics_", form=Kept(kept))
            imputed = op.Where(gaps, values, op.columns(x, columns, count))
        return _with_flags(op, model, x, imputed, len(columns))


def _with_flags(op: ModelWriter, model: Any, x: str | Columns, imputed: Any, width: int) -> Scores:
    """Return the outputs of an imputer: imputed columns, and the missing indicator if it adds one."""
    n_flags = len(model.indicator_.features_) if model.add_indicator else 0
    if not n_flags:
        return transformation(op, imputed, width)
    flags = _indicated(op, model.indicator_, x)
    if not isinstance(imputed, Columns):
        return transformation(op, op.Concat(imputed, flags, axis=1), width + n_flags)
    added = tuple(op.column(flags, i) for i in range(n_flags))
    return transformation(op, Columns((*imputed.tensors, *added)), width + n_flags)


def _imputed_text(op: ModelWriter, model: Any, x: Columns, position: int) -> str:
    """Append an imputed column of text."""
    column = op.column(x, position)
    if not op.has_text(column):
        raise op.fail(model, "it imputes both text and numbers: use one imputer for each.")
    value = op.constant(np.array([[as_text(model.statistics_[position])]], dtype=object))
    imputed = op.Where(_is_missing(op, model, column), value, column)
    return op.set_type(imputed, TensorProto.STRING, (None, 1))


class IterativeImputerDefinition(ModelDefinition):
    """IterativeImputer: columns predicted from the others, in rounds (Azur et al., IJMPR 20, 2011)."""

    def covers(self, model: Any) -> bool:
        return not model.sample_posterior  # a random draw

    def children(self, model: Any) -> Iterator[Any]:
        yield model.initial_imputer_
        yield from (step.estimator for step in model.imputation_sequence_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        filled = op.write(model.initial_imputer_, x, "initial_imputer_").score
        kept = np.flatnonzero(_kept(model.initial_imputer_))
        # a column without values in the fit is only filled
        empty = np.asarray(model._is_empty_feature)[kept]
        if model.n_iter_ == 0:
            return _with_flags(op, model, x, filled, len(kept))
        missing = _is_missing(op, model, x)
        gaps = [op.Gather(missing, [column], axis=1) for column in kept.tolist()]
        columns = [op.column(filled, place) for place in range(len(kept))]
        for number, (place, others, estimator) in enumerate(model.imputation_sequence_):
            if empty[place]:
                continue
            known = op.joined([columns[other] for other in others])
            op.set_type(known, op.elem_type, (None, len(others)))
            found = op.write(estimator, known, f"imputation_sequence_[{number}].estimator").predicted
            for limit, bounded in ((model._min_value[place], op.Max), (model._max_value[place], op.Min)):
                found = bounded(found, float(limit)) if np.isfinite(limit) else found
            columns[place] = op.Where(gaps[place], found, columns[place])
        result = op.joined(columns)
        if not empty.any():
            # scikit-learn returns the initial values if all samples miss all values
            absent = op.Cast(op.joined(gaps), to=op.elem_type)
            some = op.Sub(1.0, op.ReduceMin(absent, keepdims=1))
            result = op.Add(filled, op.Mul(op.Sub(result, filled), some))
        return _with_flags(op, model, x, result, len(kept))


class KNNImputerDefinition(ModelDefinition):
    """KNNImputer: the mean over the nearest donors, of equally near ones the first."""

    # Troyanskaya, O. et al., "Missing value estimation methods for DNA microarrays", Bioinformatics 17, 2001
    continuous = False

    def covers(self, model: Any) -> bool:
        return model.metric == "nan_euclidean" and model.weights in ("uniform", "distance")

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        present = ~model._mask_fit_X
        values = op.parameter(model, "_fit_X", form=Kept(present), role="table")
        values = op.Cast(values, to=TensorProto.DOUBLE)  # as scikit-learn measures distances
        places = np.where(present, np.cumsum(present).reshape(present.shape), 0)
        rows = op.Gather(op.Pad(values, [1, 0], op.constant(np.zeros(()))), places, axis=0)
        missing = _is_missing(op, model, x)
        squares = self._squares(op, op.Where(missing, 0.0, x), missing, rows, present)
        columns = []
        for column, is_known in enumerate(model._valid_mask):
            gaps = op.Gather(missing, [column], axis=1)
            if is_known:
                donors = np.flatnonzero(present[:, column])
                donated = op.Gather(values, places[donors, column] - 1, axis=0)
                # For samples that miss it only, as neighbours take time, and the first sample: onnxruntime
                # stops the process on a TopK of no samples.
                flags = op.Cast(gaps, to=TensorProto.INT64)
                samples = op.Concat([0], op.Gather(op.NonZero(flags), 0, axis=0), axis=0)
                near = op.Gather(squares, samples, axis=0)
                near = near if len(donors) == len(present) else op.Gather(near, donors, axis=1)
                found = op.Cast(self._mean(op, model, near, donated, len(donors)), to=op.elem_type)
                place = op.Reshape(op.Mul(op.CumSum(flags, 0), flags), [-1])
                found = op.Gather(found, place, axis=0)
                columns.append(op.Where(gaps, found, op.column(x, column)))
            elif model.keep_empty_features:
                columns.append(op.Mul(op.ones_where(gaps), 0.0))
        return _with_flags(op, model, x, op.joined(columns), len(columns))

    def _squares(self, op: ModelWriter, x: str, missing: str, rows: str, present: np.ndarray) -> str:
        """Append squared distances over common columns, divided by the share of these, of shape (n, m)."""
        x = op.Cast(x, to=TensorProto.DOUBLE)
        there = op.Sub(op.constant(np.ones(())), op.Cast(missing, to=TensorProto.DOUBLE))
        both = present.astype(np.float64)
        sizes = op.Add(products(op, op.Mul(x, x), op.constant(both)), products(op, there, op.Mul(rows, rows)))
        doubled = op.Mul(products(op, x, rows), op.constant(np.float64(2)))
        squares = op.Max(op.Sub(sizes, doubled), op.constant(np.zeros(())))
        count = products(op, there, op.constant(both))
        none = op.Cast(op.Equal(count, op.constant(np.zeros(()))), to=TensorProto.DOUBLE)
        share = op.Div(op.constant(np.float64(present.shape[1])), op.Add(count, none))
        return op.Add(op.Mul(squares, share), op.Mul(none, op.constant(np.float64(FAR))))

    def _mean(self, op: ModelWriter, model: Any, squares: str, values: str, count: int) -> str:
        """Append the mean of the values of the nearest samples, or of all if none has a common value."""
        near, numbers = op.TopK(squares, [min(model.n_neighbors, count)], axis=1, largest=0, n_outputs=2)
        known = op.Cast(op.Less(near, op.constant(np.float64(FAR))), to=TensorProto.DOUBLE)
        weights = known
        if model.weights == "distance":
            apart = op.Sqrt(op.Max(near, op.constant(np.float64(TOUCHING))))
            weights = op.Mul(known, op.Reciprocal(apart))
        none = op.Sub(op.constant(np.ones(())), op.ReduceMax(known, [1], keepdims=1))
        total = op.Add(op.ReduceSum(weights, [1], keepdims=1), none)
        found = op.ReduceSum(op.Mul(weights, op.Gather(values, numbers, axis=0)), [1], keepdims=1)
        return op.Add(op.Div(found, total), op.Mul(none, op.ReduceMean(values, [0], keepdims=1)))
