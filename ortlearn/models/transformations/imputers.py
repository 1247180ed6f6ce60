"""Imputers of missing values, and missing indicators."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

from ..base import ModelDefinition
from ..categories import as_text, category_numbers
from ..columns import Columns
from ..forms import Kept
from ..formulas.kernels import products
from ..scores import Scores, transformation
from ..writer import ModelWriter

FAR = 1e200  # squared distance to a sample without common features, larger than any other
SMALLEST = 1e-60  # lower bound of squared distances, for finite weights


def _is_missing(op: ModelWriter, model: Any, x: str) -> str:
    """Append the mask of missing values."""
    marker = as_text(model.missing_values)
    if op.has_text(x):
        return op.Cast(category_numbers(op, x, [marker]), to=TensorProto.BOOL)
    if marker == "nan":
        return op.IsNaN(x)
    return op.Equal(x, float(model.missing_values))


def _missing_flags(op: ModelWriter, indicator: Any, x: str | Columns) -> str:
    """Append the output of a missing indicator: a column of 0 and 1 for each of its features."""
    features = [int(feature) for feature in indicator.features_]
    if not isinstance(x, Columns):
        return op.columns(op.ones_where(_is_missing(op, indicator, x)), features)
    found = [_is_missing(op, indicator, op.column(x, feature)) for feature in features or [0]]
    return op.columns(op.ones_where(op.joined(found)), range(len(features)), len(found))


class MissingIndicatorDefinition(ModelDefinition):
    """MissingIndicator: 1 for missing values, 0 for others."""

    exact = True
    untrained = "it has no parameters"
    takes_columns = True

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        x = x if op.has_text(x) else op.matrix(x)
        return transformation(op, _missing_flags(op, model, x), len(model.features_))


def _output_mask(model: Any) -> np.ndarray:
    """Return the mask of the columns in the output of an imputer: those not empty in the fit."""
    empty = [isinstance(value, float) and value != value for value in model.statistics_.tolist()]
    return model.keep_empty_features | ~np.array(empty, dtype=bool)


class SimpleImputerDefinition(ModelDefinition):
    """SimpleImputer: a constant for each column."""

    exact = True
    takes_columns = True

    def fills_gaps_only(self, model: Any) -> bool:
        return getattr(model, "indicator_", None) is None and bool(_output_mask(model).all())

    def covers(self, model: Any) -> bool:
        return bool(_output_mask(model).any())

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        kept = _output_mask(model)
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
    """Return the output of an imputer: imputed columns and, with ``add_indicator``, missing flags."""
    n_flags = len(model.indicator_.features_) if model.add_indicator else 0
    if not n_flags:
        return transformation(op, imputed, width)
    flags = _missing_flags(op, model.indicator_, x)
    if not isinstance(imputed, Columns):
        return transformation(op, op.Concat(imputed, flags, axis=1), width + n_flags)
    added = tuple(op.column(flags, i) for i in range(n_flags))
    return transformation(op, Columns((*imputed.tensors, *added)), width + n_flags)


def _imputed_text(op: ModelWriter, model: Any, x: Columns, position: int) -> str:
    """Append a text column with missing values imputed."""
    column = op.column(x, position)
    if not op.has_text(column):
        raise op.fail(model, "it imputes both text and numbers: use a separate imputer for each type.")
    value = op.constant(np.array([[as_text(model.statistics_[position])]], dtype=object))
    imputed = op.Where(_is_missing(op, model, column), value, column)
    return op.set_type(imputed, TensorProto.STRING, (None, 1))


class IterativeImputerDefinition(ModelDefinition):
    """IterativeImputer: columns predicted from the others, in rounds (Azur et al., IJMPR 20, 2011)."""

    def covers(self, model: Any) -> bool:
        return not model.sample_posterior  # random draws

    def children(self, model: Any) -> Iterator[Any]:
        yield model.initial_imputer_
        yield from (step.estimator for step in model.imputation_sequence_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        filled = op.write(model.initial_imputer_, x, "initial_imputer_").score
        kept = np.flatnonzero(_output_mask(model.initial_imputer_))
        # columns that were empty in the fit are imputed by the initial imputer only
        empty = np.asarray(model._is_empty_feature)[kept]
        if model.n_iter_ == 0:
            return _with_flags(op, model, x, filled, len(kept))
        missing = _is_missing(op, model, x)
        gaps = [op.Gather(missing, [column], axis=1) for column in kept.tolist()]
        columns = [op.column(filled, i) for i in range(len(kept))]
        for step, (column, others, estimator) in enumerate(model.imputation_sequence_):
            if empty[column]:
                continue
            known = op.joined([columns[other] for other in others])
            op.set_type(known, op.elem_type, (None, len(others)))
            found = op.write(estimator, known, f"imputation_sequence_[{step}].estimator").predicted
            for limit, bounded in ((model._min_value[column], op.Max), (model._max_value[column], op.Min)):
                found = bounded(found, float(limit)) if np.isfinite(limit) else found
            columns[column] = op.Where(gaps[column], found, columns[column])
        result = op.joined(columns)
        if not empty.any():
            # scikit-learn returns the initial values if all values of all samples are missing
            absent = op.Cast(op.joined(gaps), to=op.elem_type)
            some = op.Sub(1.0, op.ReduceMin(absent, keepdims=1))
            result = op.Add(filled, op.Mul(op.Sub(result, filled), some))
        return _with_flags(op, model, x, result, len(kept))


class KNNImputerDefinition(ModelDefinition):
    """KNNImputer: the mean over the nearest donors; ties are broken by their order."""

    # Troyanskaya, O. et al., "Missing value estimation methods for DNA microarrays", Bioinformatics 17, 2001
    continuous = False

    def covers(self, model: Any) -> bool:
        return model.metric == "nan_euclidean" and model.weights in ("uniform", "distance")

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        present = ~model._mask_fit_X
        values = op.parameter(model, "_fit_X", form=Kept(present), role="table")
        values = op.Cast(values, to=TensorProto.DOUBLE)  # the type of distances in scikit-learn
        positions = np.where(present, np.cumsum(present).reshape(present.shape), 0)
        rows = op.Gather(op.Pad(values, [1, 0], op.constant(np.zeros(()))), positions, axis=0)
        missing = _is_missing(op, model, x)
        squares = self._squares(op, op.Where(missing, 0.0, x), missing, rows, present)
        columns = []
        for column, is_known in enumerate(model._valid_mask):
            gaps = op.Gather(missing, [column], axis=1)
            if is_known:
                donors = np.flatnonzero(present[:, column])
                donated = op.Gather(values, positions[donors, column] - 1, axis=0)
                # only for samples where it is missing, as neighbours take time, and for the first sample, as
                # onnxruntime aborts the process on a TopK of no samples
                flags = op.Cast(gaps, to=TensorProto.INT64)
                samples = op.Concat([0], op.Gather(op.NonZero(flags), 0, axis=0), axis=0)
                near = op.Gather(squares, samples, axis=0)
                near = near if len(donors) == len(present) else op.Gather(near, donors, axis=1)
                found = op.Cast(self._mean(op, model, near, donated, len(donors)), to=op.elem_type)
                index = op.Reshape(op.Mul(op.CumSum(flags, 0), flags), [-1])
                found = op.Gather(found, index, axis=0)
                columns.append(op.Where(gaps, found, op.column(x, column)))
            elif model.keep_empty_features:
                columns.append(op.Mul(op.ones_where(gaps), 0.0))
        return _with_flags(op, model, x, op.joined(columns), len(columns))

    def _squares(self, op: ModelWriter, x: str, missing: str, rows: str, present: np.ndarray) -> str:
        """Append squared distances over common features, divided by the share of these, of shape (n, m)."""
        x = op.Cast(x, to=TensorProto.DOUBLE)
        observed = op.Sub(op.constant(np.ones(())), op.Cast(missing, to=TensorProto.DOUBLE))
        fitted = op.constant(present.astype(np.float64))
        sizes = op.Add(products(op, op.Mul(x, x), fitted), products(op, observed, op.Mul(rows, rows)))
        doubled = op.Mul(products(op, x, rows), op.constant(np.float64(2)))
        squares = op.Max(op.Sub(sizes, doubled), op.constant(np.zeros(())))
        count = products(op, observed, fitted)
        no_common = op.Cast(op.Equal(count, op.constant(np.zeros(()))), to=TensorProto.DOUBLE)
        share = op.Div(op.constant(np.float64(present.shape[1])), op.Add(count, no_common))
        return op.Add(op.Mul(squares, share), op.Mul(no_common, op.constant(np.float64(FAR))))

    def _mean(self, op: ModelWriter, model: Any, squares: str, values: str, count: int) -> str:
        """Append the mean of the values of the nearest donors, or of all if these have no common features."""
        near, indices = op.TopK(squares, [min(model.n_neighbors, count)], axis=1, largest=0, n_outputs=2)
        known = op.Cast(op.Less(near, op.constant(np.float64(FAR))), to=TensorProto.DOUBLE)
        weights = known
        if model.weights == "distance":
            distances = op.Sqrt(op.Max(near, op.constant(np.float64(SMALLEST))))
            weights = op.Mul(known, op.Reciprocal(distances))
        all_far = op.Sub(op.constant(np.ones(())), op.ReduceMax(known, [1], keepdims=1))
        total = op.Add(op.ReduceSum(weights, [1], keepdims=1), all_far)
        found = op.ReduceSum(op.Mul(weights, op.Gather(values, indices, axis=0)), [1], keepdims=1)
        return op.Add(op.Div(found, total), op.Mul(all_far, op.ReduceMean(values, [0], keepdims=1)))
