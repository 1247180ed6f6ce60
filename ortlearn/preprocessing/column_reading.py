"""Convert the columns of samples to inputs of a graph."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..models.categories import as_text
from .columns import (
    NUMBERS,
    as_columns,
    check_has_columns,
    column_kind,
    column_values,
    is_frame,
    is_missing,
    missing_samples,
)
from .schema import Input, InputSchema


def read_columns(X: Any, schema: InputSchema) -> dict[str, np.ndarray]:
    """Return an array for each input of a graph, with its type and rank."""
    if isinstance(X, Mapping) or is_frame(X):
        check_has_columns(X, () if schema.is_matrix else [item.column for item in schema.inputs])
    else:
        names = [item.column for item in schema.inputs if isinstance(item.column, str)]
        if names:
            raise ValueError(
                f"The model takes the columns {names} by name: pass a frame or a dictionary, not "
                f"{type(X).__name__}."
            )
    X = as_columns(X)
    arrays = {item.name: _read(X, item, schema) for item in schema.inputs}
    _check_named_sizes(arrays, schema)
    return arrays


def _check_named_sizes(arrays: Mapping[str, np.ndarray], schema: InputSchema) -> None:
    """Raise a ValueError if inputs differ in the size of a dimension with the same name."""
    sizes: dict[str, tuple[str, int]] = {}
    for item in schema.inputs:
        named = zip((item.known.shape or ())[1:], arrays[item.name].shape[1:], strict=False)
        for name, size in ((name, size) for name, size in named if isinstance(name, str)):
            first, expected = sizes.setdefault(name, (item.name, size))
            if size != expected:
                raise ValueError(
                    f"Inputs {first!r} and {item.name!r} of the model share the dimension {name!r}, but have "
                    f"the sizes {expected} and {size}: pad both to the same size."
                )


def _read(X: Any, item: Input, schema: InputSchema) -> np.ndarray:
    values = np.asarray(X) if item.column is None else column_values(X, item.column)
    if item.column in schema.categories:
        _check_categories(values, item.column, schema)
    label = "X" if item.column is None else f"Column {item.column!r} of X"
    missing = missing_samples(values.ravel()) if item.column in schema.documents else np.empty(0)
    if missing.size:
        raise ValueError(
            f"{label} has missing texts, in samples {missing[:10].tolist()}, which vectorizers do not "
            "support: replace them by ''."
        )
    if item.dtype == object:
        array = _as_text(values)
    elif item.dtype.kind in "iu":
        array = _as_integers(values, item.dtype, label)
    else:
        array = _as_numbers(values, item.dtype, label)
    return _with_rank(array, item, label)


def _with_rank(array: np.ndarray, item: Input, label: str) -> np.ndarray:
    """Return a column with the rank of the input."""
    shape = item.known.shape
    if shape is None:
        return np.ascontiguousarray(array)
    if len(shape) == 2 and array.ndim == 1:
        array = array.reshape(-1, 1)
    elif len(shape) == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    sizes = zip(array.shape[1:], shape[1:], strict=False)
    if array.ndim != len(shape) or any(isinstance(want, int) and want != have for have, want in sizes):
        raise ValueError(f"{label} has the shape {array.shape}, but the model expects {shape}.")
    return np.ascontiguousarray(array)


def _as_text(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "UT":
        return values.astype(object)
    items = values.ravel().tolist()
    texts = [value if type(value) is str else as_text(value) for value in items]
    return np.array(texts, dtype=object).reshape(values.shape)


def _as_numbers(values: np.ndarray, dtype: np.dtype, label: str) -> np.ndarray:
    if values.dtype.kind not in NUMBERS:
        kind, items = column_kind(values), values.ravel().tolist()
        if kind not in ("float", "integer", "bool"):
            bad = [v for v in items if not is_missing(v) and not isinstance(v, float | int)]
            example = f"{bad[0]!r}, among others" if bad else f"values of type {values.dtype}"
            raise ValueError(f"{label} must hold numbers, but contains {example}.")
        items = [np.nan if is_missing(value) else value for value in items]
        values = np.array(items, dtype=np.float64).reshape(values.shape)
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)


def _as_integers(values: np.ndarray, dtype: np.dtype, label: str) -> np.ndarray:
    if values.dtype.kind in "iub":
        return values.astype(dtype, copy=False)
    numbers = _as_numbers(values, np.dtype(np.float64), label)
    if not (np.isfinite(numbers) & (numbers == np.round(numbers))).all():
        raise ValueError(
            f"{label} had integers when the model was fitted, but now has missing values or fractions: pass "
            "integers."
        )
    return numbers.astype(dtype)


def check_categories(matrix: Any, schema: InputSchema) -> None:
    """Raise a ValueError if a matrix has categories that an encoder or a model rejects."""
    for column in schema.categories:
        values = matrix[:, [column]].toarray() if hasattr(matrix, "toarray") else matrix[:, column]
        _check_categories(values, column, schema)


def _check_categories(values: np.ndarray, column: Hashable | None, schema: InputSchema) -> None:
    categories = schema.categories[column]
    found = set((np.trunc(values) if column in schema.whole else values).ravel().tolist())
    if values.dtype == np.float32:  # the graph rounds categories
        numbers = [value for value in categories if isinstance(value, float)]
        categories = categories.union(np.array(numbers, dtype=np.float32).tolist())
    missing = any(map(is_missing, categories))
    unknown = [value for value in found - categories if not (missing and is_missing(value))]
    if unknown:
        some = sorted(map(str, unknown))[:5]
        raise ValueError(
            f"Found unknown categories {some} in column {column!r}, which the encoder or model was fitted "
            "without: set handle_unknown='ignore' (or 'use_encoded_value') of an encoder, or min_categories "
            "of CategoricalNB, to accept them."
        )
