"""Rows as people have them -> rows as a graph takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.validation import validate_data

from .. import conversion
from ..preprocessing.columns import (
    as_array_like,
    as_columns,
    column_keys,
    column_kind,
    column_values,
    count_rows,
    is_frame,
)
from ..preprocessing.named_rows import with_readable_names
from ..training import Columns, Data, Device
from .class_weights import objective_weights
from .fidelity import compare_with_sklearn, some_rows, take
from .inference import Inference
from .precision import warn_of_rounding
from .problem import Problem
from .sources import check_source
from .targets import check_labels, one_class
from .validation import check_weights

if TYPE_CHECKING:
    from ..conversion import InputSchema

__all__ = ["RowsMixin", "check_lengths"]


def check_lengths(X: Any, y: Any) -> None:
    """Raise an error if X and y have other numbers of rows, or a row of y is None.

    Parameters
    ----------
    X : array-like, sparse matrix, frame or mapping of str to array-like
        Rows.
    y : array-like or None
        Labels.
    """
    n_rows = count_rows(X)
    if y is not None:
        check_consistent_length(np.empty(n_rows), y)
        check_labels(y)


class RowsMixin:
    """What checks and reads X and sample weights."""

    estimator: Any
    dtype: str
    n_jobs: int | None
    warm_start: bool
    n_features_in_: int
    _problem: Problem

    def _device(self) -> Device:
        raise NotImplementedError

    def _pose(self, X, y, sample_weight, random_state, classes=None) -> tuple[Problem, Data]:
        """Resolve plugins, convert the model, and check the rows."""
        self._device()
        check_source(self.estimator)
        check_lengths(X, y)
        self._check_names_of_last_fit(X)
        weights = rows = None
        if not conversion.is_onnx_source(self.estimator):
            rows = self._check_before_fit(X)
            self._check_classes_before_fit(y, classes)
            weights = None if sample_weight is None else check_weights(sample_weight, count_rows(X))
        problem = Problem.pose(self, X, y, weights, random_state, classes)
        if problem.source is not None and conversion.accepts_missing(problem.source):
            problem = replace(problem, missing=conversion.missing_columns(problem.source, X))
        self._warn_of_one_column(problem, y)
        rows = self._read(problem, X, reset=True, rows=rows)
        if problem.source is None and problem.trainable.head is not None:
            # Scores of other numbers of samples would be broadcast to the labels without a word.
            Inference(problem, problem.trainable.model, self._device(), self.n_jobs).scores(rows[:3])
        if sample_weight is not None:
            weights = check_weights(sample_weight, rows.shape[0])
        problem = problem.with_class_weights(self, y, weights)
        data = self._data(problem, rows, y, sample_weight)
        self._compare(problem, X, y, rows)
        return problem, data

    def _compare(self, problem: Problem, X: Any, y: Any, rows: Any) -> None:
        """Warn where float32 has too few digits for X or y, or where scikit-learn predicts something else."""
        front = problem.trainable.front
        some = X if front is None else front.transform(take(X, some_rows(rows.shape[0])))
        loses_digits = warn_of_rounding(problem, some, y)
        if problem.source is not None and not loses_digits:
            runner = Inference(problem, problem.trainable.model, self._device(), self.n_jobs)
            compare_with_sklearn(runner, problem.source, X, rows, y)

    def _warn_of_one_column(self, problem: Problem, y: Any) -> None:
        """Warn, as scikit-learn does, of y with one column for a regressor of one output."""
        head = problem.trainable.head
        if head is None or head.task != "regression" or problem.source is None:
            return
        if problem.y_ndim == 2 and head.n_outputs == 1 and not get_tags(self).target_tags.multi_output:
            column_or_1d(y, warn=True)

    def _check_names_of_last_fit(self, X: Any) -> None:
        """Check that training goes on with the columns it began with, by name and in their order."""
        if not conversion.is_onnx_source(self.estimator) and conversion.is_fitted(self.estimator):
            conversion.check_feature_names(self.estimator, X)
        elif self.warm_start and hasattr(self, "_trained") and not self._problem.trainable.selects_by_name:
            conversion.check_feature_names(self, X)

    def _check_before_fit(self, X: Any) -> Any:
        """Check rows before a model is fitted on them; numbers are returned in the graph's type."""
        if isinstance(X, Mapping):
            raise ValueError(
                "X is a dictionary, which only ONNX models of several inputs take: pass a frame, such as "
                "pandas.DataFrame(X)."
            )
        if _are_numbers(X):
            return self._validate_rows(
                X, np.dtype(self.dtype), True, conversion.accepts_missing(self.estimator)
            )
        self._check_columns(X, reset=True)
        return None

    def _check_classes_before_fit(self, y: Any, classes: Any) -> None:
        """Check that a classifier that is not fitted has more than one class to tell apart."""
        if classes is None and y is not None and not conversion.is_fitted(self.estimator):
            one = one_class(y)
            if one is not None and get_tags(self).estimator_type == "classifier":
                raise ValueError(
                    f"A classifier needs samples of at least 2 classes, y has 1 class: [{one!r}]."
                )

    def _check_rows(self, problem: Problem, X: Any, y: Any) -> Any:
        """Return X as the graph takes it, after a look at its length."""
        check_lengths(X, y)
        return self._read(problem, X)

    def _read(self, problem: Problem, X: Any, reset: bool = False, rows: Any = None) -> Any:
        """Return X as the graph takes it.

        Parameters
        ----------
        problem : Problem
            What is trained.
        X : array-like, sparse matrix, frame or mapping of str to array-like
            Rows.
        reset : bool, default=False
            Whether the columns are those of a first fit.
        rows : ndarray or CSR matrix, default=None
            The same rows where they were found to be numbers before.

        Returns
        -------
        ndarray, CSR matrix or Columns
            Rows.
        """
        front, schema = problem.trainable.front, problem.trainable.schema
        X = as_array_like(X)
        if isinstance(X, Mapping) and schema.is_matrix and schema.inputs[0].name in X:
            X = X[schema.inputs[0].name]
        if front is None and schema.is_number_matrix:
            if rows is None:
                _check_are_numbers(X)
            may_miss = bool(problem.missing)
            if rows is None or rows.dtype != schema.float_dtype:
                rows = self._validate_rows(X, schema.float_dtype, reset, may_miss)
            else:
                may_miss = may_miss or conversion.accepts_missing(self.estimator)
            problem.check_features(rows.shape[1])
            conversion.check_categories(rows, schema)
            if may_miss:
                _check_missing(rows, problem.missing)
            return rows
        self._check_columns(X, reset, problem)
        if front is not None:
            X = front.transform(*conversion.untouched(front, X))
            if schema.is_number_matrix:
                return _numbers(X, schema, problem.missing)
        columns = conversion.read_columns(X, schema)
        _check_finite(columns, schema, problem.missing)
        return Columns(columns)

    def _check_columns(self, X: Any, reset: bool, problem: Problem | None = None) -> None:
        """Check number and names of columns of several kinds."""
        if count_rows(X) < 1:
            raise ValueError(
                f"Found array with 0 sample(s) while a minimum of 1 is required by {type(self).__name__}."
            )
        if isinstance(X, Mapping):
            if reset:
                self.n_features_in_, self.feature_names_in_ = len(X), np.array(list(X), dtype=object)
            return
        by_name = problem is not None and is_frame(X) and problem.trainable.selects_by_name
        if reset or not by_name:
            validate_data(self, with_readable_names(X), reset=reset, skip_check_array=True)

    def _validate_rows(self, X, dtype, reset: bool, allow_missing: bool = False) -> np.ndarray:
        finite = "allow-nan" if allow_missing else True
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is an error below
            return validate_data(
                self,
                with_readable_names(X),
                reset=reset,
                dtype=dtype,
                order="C",
                accept_sparse="csr",
                ensure_all_finite=finite,
            )

    def _data(self, problem: Problem, rows: Any, y, sample_weight) -> Data:
        """Return rows, labels and weights as the graph takes them."""
        n_rows = rows.shape[0]
        labels = problem.encoder.encode(y, n_rows)
        weights = None if sample_weight is None else check_weights(sample_weight, n_rows)
        return Data(rows, labels, objective_weights(problem, y, weights, n_rows))


def _are_numbers(X: Any) -> bool:
    """Tell whether all columns of X are numbers, as far as one can see without reading all of it."""
    if issparse(X):
        return True
    if isinstance(X, Mapping):
        return False
    if not is_frame(X):
        X = as_columns(X)
        if X.dtype.kind != "O":
            return X.dtype.kind not in "UTSMmV"
    kinds = (column_kind(column_values(X, key)) for key in column_keys(X))
    return all(kind in ("float", "integer", "bool") for kind in kinds)


def _check_are_numbers(X: Any) -> None:
    """Raise an error for dates and texts, which scikit-learn's checks would turn into numbers."""
    if _are_numbers(X):
        return
    values = np.asarray(X)
    kind = column_kind(values)
    if kind in ("text", "other"):
        raise ValueError(
            f"X must hold numbers, and has type {values.dtype}: pass numbers, such as X.astype(float) where "
            "texts are numbers, or the seconds since some date in the place of dates."
        )


def _numbers(X: Any, schema: InputSchema, missing: frozenset) -> Any:
    """Return what scikit-learn's part of a pipeline gives, as the graph takes it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return check_array(
            X,
            dtype=schema.float_dtype,
            order="C",
            accept_sparse="csr",
            ensure_all_finite="allow-nan" if missing else True,
            input_name="X",
        )


def _check_missing(rows: Any, allowed: frozenset) -> None:
    """Raise an error for missing values in columns where the model takes none."""
    if len(allowed) == rows.shape[1]:
        return
    values = rows.data if issparse(rows) else rows
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    found = np.isnan(rows.toarray() if issparse(rows) else rows).any(axis=0)
    bad = [int(column) for column in np.flatnonzero(found) if column not in allowed]
    if bad:
        raise ValueError(
            f"Input X contains NaN in columns {bad[:10]}, where the model accepts no missing values."
        )


def _check_finite(columns: dict[str, np.ndarray], schema: InputSchema, allowed: frozenset) -> None:
    """Raise an error for infinities, and for missing values where the model takes none."""
    for item in schema.inputs:
        array = columns[item.name]
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        where = "" if item.column is None else f" in column {item.column!r}"
        if np.isinf(array).any():
            raise ValueError(f"Input X contains infinity or a value too large for {array.dtype!r}{where}.")
        if item.position is None or item.position not in allowed:
            raise ValueError(f"Input X contains NaN{where}, where the model accepts no missing values.")
