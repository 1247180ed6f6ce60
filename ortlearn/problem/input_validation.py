"""Validate X, and convert it to the input of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _get_feature_names,
    _num_features,
)

from ..data.columns import Columns
from ..data.source_features import SourceFeatures
from ..data.tables import Table
from ..preprocessing.column_reading import check_categories, read_columns
from ..preprocessing.columns import (
    as_array_like,
    as_columns,
    column_keys,
    column_kind,
    column_values,
    count_samples,
    holds_arrays,
    is_frame,
    shape_of,
    with_readable_names,
)
from ..preprocessing.initial_fit import untouched
from ..preprocessing.missing import accepts_missing
from .problem import Problem

if TYPE_CHECKING:
    from ..preprocessing.schema import InputSchema

__all__ = ["InputFeatures", "as_column", "matrix_of", "read_before_fit", "read_samples"]


@lru_cache(maxsize=16)
def _class_named(name: str) -> type:
    return type(name, (), {})


@dataclass(frozen=True)
class InputFeatures:
    """Features seen in ``fit``, with scikit-learn's checks of names and number."""

    estimator: str
    count: int | None
    names: np.ndarray | None

    @classmethod
    def of(cls, X: Any, estimator: str) -> InputFeatures:
        """Return the features of X."""
        if isinstance(X, Mapping):
            return cls(estimator, len(X), np.array(list(X), dtype=object))
        try:
            count = _num_features(X)
        except (TypeError, IndexError, ValueError):  # reading X raises a better error
            count = None
        if len(np.shape(X if hasattr(X, "shape") else X[:1])) > 2:  # the second axis is not the features
            count = None
        return cls(estimator, count, _get_feature_names(with_readable_names(X)))

    def _as_estimator(self) -> Any:
        """Return an object with these features for scikit-learn's checks."""
        seen = _class_named(self.estimator)()
        if self.count is not None:
            seen.n_features_in_ = self.count
        if self.names is not None:
            seen.feature_names_in_ = self.names
        return seen

    def check(self, X: Any) -> None:
        """Check names and number of the features of X."""
        seen = self._as_estimator()
        _check_feature_names(seen, with_readable_names(X), reset=False)
        _check_n_features(seen, X, reset=False)

    def check_order(self, X: Any) -> None:
        """Raise an error if both have names, and names or their order differ."""
        if self.names is not None and _get_feature_names(X) is not None:
            _check_feature_names(self._as_estimator(), X, reset=False)

    def check_columns(self, X: Any, by_name: bool = False) -> None:
        """Check that X has samples and, unless columns are selected by name, the same columns."""
        if count_samples(X) < 1:
            raise ValueError(
                f"Found array with 0 sample(s) while a minimum of 1 is required by {self.estimator}."
            )
        if not isinstance(X, Mapping) and not (by_name and is_frame(X)):
            self.check(X)

    def read_matrix(self, X: Any, dtype: np.dtype, allow_missing: bool) -> Any:
        """Check X, and return it as a matrix of a type."""
        X = with_readable_names(X)
        _check_feature_names(self._as_estimator(), X, reset=False)
        array = _checked(X, dtype, allow_missing, estimator=self.estimator)
        _check_n_features(self._as_estimator(), array, reset=False)
        return array


def as_column(X: Any, source: Any) -> Any:
    """Return a vector as a column if the model takes vectors, as IsotonicRegression does."""
    if not hasattr(source, "__sklearn_tags__") or is_frame(X) or np.ndim(X) != 1:
        return X
    tags = get_tags(source).input_tags
    return np.reshape(X, (-1, 1)) if tags.one_d_array and not tags.two_d_array and not tags.string else X


def matrix_of(problem: Problem, X: Any) -> Any:
    """Return X, or the matrix in a mapping from the name of the single input."""
    X, schema = as_column(as_array_like(X), problem.source), problem.trainable.entry.schema
    if isinstance(X, Mapping) and schema.is_matrix and schema.inputs[0].name in X:
        return X[schema.inputs[0].name]
    return X


def read_before_fit(X: Any, features: InputFeatures, source: Any, dtype: np.dtype) -> Any:
    """Check samples before a model is fitted on them; return numeric ones as a matrix, None for others."""
    if isinstance(X, Mapping):
        raise ValueError(
            "X is a dictionary, which only ONNX models with several inputs accept: pass a frame, such as "
            "pandas.DataFrame(X)."
        )
    if _are_numbers(X):
        return features.read_matrix(X, dtype, accepts_missing(source))
    features.check_columns(X)
    return None


def read_samples(problem: Problem, X: Any, features: InputFeatures, matrix: Any = None) -> Any:
    """Check X, and return it as an array, CSR matrix or Columns for the graph.

    ``matrix`` is the result of :func:`read_before_fit`, if X was read before.
    """
    if isinstance(X, SourceFeatures):
        return X.reading(lambda part: read_samples(problem, part, features))
    steps, schema = problem.trainable.entry.sklearn_steps, problem.trainable.entry.schema
    if isinstance(X, Table):
        if steps is None and schema.is_number_matrix and X.holds_numbers:  # columns were selected by name
            X, features = X.matrix(schema.float_dtype), replace(features, names=None)
        else:
            X = X.frame(schema.float_dtype)
    X = matrix_of(problem, X)
    if steps is None and schema.is_number_matrix:
        return _read_numbers(problem, X, features, matrix)
    if schema.is_array:
        arrays = read_columns(_as_one_array(X), schema)
        _check_finite(arrays, schema, problem.missing)
        return Columns(arrays)
    features.check_columns(X, problem.trainable.entry.selects_by_name)
    if steps is not None:
        n_samples, X = count_samples(X), steps.transform(*untouched(steps, X))
        if count_samples(X) != n_samples:
            raise ValueError(
                f"The steps that run in scikit-learn changed the number of samples from {n_samples} to "
                f"{count_samples(X)}, so labels do not match: transform X first, and train the other steps."
            )
        if schema.is_number_matrix:
            return _checked(X, schema.float_dtype, bool(problem.missing))
    columns = read_columns(X, schema)
    _check_finite(columns, schema, problem.missing)
    return Columns(columns)


def _as_one_array(X: Any) -> Any:
    """Return samples of several dimensions as one array."""
    if issparse(X) or is_frame(X):
        raise ValueError(
            f"X is a {type(X).__name__}, which has two dimensions: pass an array with the shape of the input."
        )
    shape_of(X, "X")
    return np.asarray(list(X) if holds_arrays(X) else X)


def _read_numbers(problem: Problem, X: Any, features: InputFeatures, matrix: Any) -> Any:
    """Check a numeric X, and return it as a matrix."""
    schema, was_read = problem.trainable.entry.schema, matrix is not None
    if not was_read and (isinstance(X, list) or holds_arrays(X)):
        shape_of(X, "X")
    if not was_read:
        _check_are_numbers(X)
    if matrix is None or matrix.dtype != schema.float_dtype:
        matrix = features.read_matrix(X, schema.float_dtype, bool(problem.missing))
    expected = problem.trainable.n_features
    if expected is not None and matrix.shape[1] != expected:
        raise ValueError(
            f"X has {matrix.shape[1]} features, but the model to train is expecting {expected} features "
            "as input."
        )
    check_categories(matrix, schema)
    if was_read or problem.missing:
        _check_missing(matrix, problem.missing)
    return matrix


def _checked(X: Any, dtype: np.dtype, allow_missing: bool, estimator: str | None = None) -> Any:
    """Return X as a matrix, after scikit-learn's checks."""
    with np.errstate(over="ignore", invalid="ignore"):  # check_array raises an error instead
        return check_array(
            X,
            dtype=dtype,
            order="C",
            accept_sparse="csr",
            ensure_all_finite="allow-nan" if allow_missing else True,
            estimator=estimator,
            input_name="X",
        )


def _are_numbers(X: Any) -> bool:
    """Return whether all columns of X are numbers, without reading all values."""
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
    """Raise an error for dates and texts, which ``check_array`` would convert to numbers."""
    if _are_numbers(X):
        return
    values = np.asarray(X)
    kind = column_kind(values)
    if kind in ("text", "other"):
        raise ValueError(
            f"X must contain numbers, and has type {values.dtype}: convert texts with X.astype(float), and "
            "dates to seconds since a fixed date."
        )


def _check_missing(matrix: Any, allowed: frozenset) -> None:
    """Raise an error for missing values in columns that must not have any."""
    if len(allowed) == matrix.shape[1]:
        return
    values = matrix.data if issparse(matrix) else matrix
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    found = np.isnan(matrix.toarray() if issparse(matrix) else matrix).any(axis=0)
    bad = [int(column) for column in np.flatnonzero(found) if column not in allowed]
    if bad:
        raise ValueError(
            f"Input X contains NaN in columns {bad[:10]}, in which the model does not accept missing values."
        )


def _has_finite_sum(array: np.ndarray) -> bool:
    """Return whether the sum is finite, which is a fast sufficient condition for finite values."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()))


def _check_finite(columns: dict[str, np.ndarray], schema: InputSchema, allowed: frozenset) -> None:
    """Raise an error for infinite values, and for missing ones in columns that must not have any."""
    for number, item in enumerate(schema.inputs):
        array = columns[item.name]
        if array.dtype.kind != "f" or _has_finite_sum(array) or np.isfinite(array).all():
            continue
        where = "" if item.column is None else f" in column {item.column!r}"
        if np.isinf(array).any():
            raise ValueError(f"Input X contains infinity or a value too large for {array.dtype!r}{where}.")
        if (number if item.position is None else item.position) not in allowed:
            raise ValueError(
                f"Input X contains NaN{where}, and the model does not accept missing values there."
            )
