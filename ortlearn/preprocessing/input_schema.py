"""The inputs of the graph of a scikit-learn estimator, from the samples it is to be trained on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from scipy.sparse import issparse

from ..exceptions import ConversionError
from ..graphs import TensorType
from .columns import as_columns, column_keys, column_kind, column_values, is_frame
from .readers import Reader, first_readers, selected_names
from .schema import Input, InputSchema, matrix_schema

__all__ = ["input_schema"]

#: Numbers beyond which a float32 or a float64 has no longer every whole one.
EXACT = {np.dtype(np.float32): 2**24, np.dtype(np.float64): 2**53}


def input_schema(X: Any, estimator: Any, dtype: Any = np.float32) -> InputSchema:
    """Return what the graph of a fitted estimator takes; a few samples will do.

    Numbers are one matrix; a frame or an array that also holds text, categories or whole numbers too
    large for the floating-point type has an input for each column that the estimator reads, and so has
    a frame whose columns are selected by name. A ConversionError names a column of neither numbers nor text.
    """
    dtype = np.dtype(dtype)
    if issparse(X):
        _check_count(X.shape[1], estimator)
        return matrix_schema(X.shape[1], dtype)
    if not is_frame(X):
        X = as_columns(X)
        if X.ndim == 1 and X.dtype.kind in "OUT":  # documents
            texts = Input("X", TensorType(TensorProto.STRING, (None, 1)))
            vectorized = any(map(_vectorizes, first_readers(estimator, [0])))
            return InputSchema((texts,), n_features=1, documents=frozenset([None] if vectorized else []))
    names_of_fit = selected_names(estimator) if is_frame(X) else None
    by_name = names_of_fit is not None
    keys = column_keys(X) if names_of_fit is None else names_of_fit
    _check_count(len(keys), estimator)
    if by_name:
        _check_names(estimator, keys, column_keys(X))
    readers = list(first_readers(estimator, range(len(keys))))
    categories = _categories(readers, keys)
    if not by_name and _are_numbers(X, keys, readers, dtype):
        schema = matrix_schema(len(keys), dtype)
        by_position: dict[Hashable, frozenset] = {
            keys.index(key): values for key, values in categories.items()
        }
        return InputSchema(schema.inputs, by_position, len(keys))
    if not is_frame(X) and X.dtype.kind in "UT":
        schema = matrix_schema(len(keys), np.dtype(object))
        return InputSchema(schema.inputs, {}, len(keys))
    documents = frozenset(keys[reader.position] for reader in readers if _vectorizes(reader))
    inputs = _inputs_of_columns(X, keys, readers, dtype)
    return InputSchema(inputs, categories, len(keys), by_name, documents)


def _inputs_of_columns(
    X: Any, keys: list[Hashable], readers: list[Reader], dtype: np.dtype
) -> tuple[Input, ...]:
    """Return an input for each column that is read."""
    used = sorted({reader.position for reader in readers})
    names = _input_names([keys[position] for position in used], is_frame(X))
    return tuple(
        Input(name, TensorType(_elem_type(X, keys[p], readers, p, dtype), (None, 1)), keys[p], p)
        for name, p in zip(names, used, strict=True)
    )


def _check_names(estimator: Any, keys: list[Hashable], known: list[Hashable]) -> None:
    used = {keys[reader.position] for reader in first_readers(estimator, range(len(keys)))}
    missing = sorted(str(key) for key in used.difference(known))
    if missing:
        raise ValueError(f"Columns are missing: {missing}; X has {sorted(map(str, known))}.")


def _check_count(n_columns: int, estimator: Any) -> None:
    expected = getattr(estimator, "n_features_in_", n_columns)
    if n_columns != expected:
        raise ValueError(
            f"X has {n_columns} features, but the model to train is expecting {expected} features as input."
        )


def _are_numbers(X: Any, keys: list[Hashable], readers: list[Reader], dtype: np.dtype) -> bool:
    """Return whether a matrix of floating-point numbers holds all columns without loss."""
    if not is_frame(X) and X.dtype.kind == "f":
        return True
    coded = {reader.position for reader in readers if _encodes(reader)}
    for position, key in enumerate(keys):
        values = column_values(X, key)
        kind = column_kind(values)
        if kind not in ("float", "integer", "bool"):
            return False
        if position in coded and kind == "integer" and np.abs(values).max(initial=0) > EXACT[dtype]:
            return False
    return True


def _encodes(reader: Reader) -> bool:
    return hasattr(reader.step, "categories_")


def _vectorizes(reader: Reader) -> bool:
    return hasattr(reader.step, "build_analyzer")


def _elem_type(X: Any, key: Hashable, readers: Iterable[Reader], position: int, dtype: np.dtype) -> int:
    """Return the type of the input that takes a column."""
    kind = column_kind(column_values(X, key))
    if kind == "text":
        return TensorProto.STRING
    if kind == "other":
        raise ConversionError(
            f"Column {key!r} of X holds neither numbers nor text only, and an ONNX graph takes nothing else."
        )
    own = [reader for reader in readers if reader.position == position]
    if kind != "float" and all(_encodes(reader) and not reader.imputed for reader in own):
        return TensorProto.INT64
    return helper.np_dtype_to_tensor_dtype(dtype)


def _input_names(keys: list[Hashable], named: bool) -> list[str]:
    """Return names for inputs: those of the columns where these have some."""
    names: list[str] = []
    for index, key in enumerate(keys):
        name = str(key) if named and isinstance(key, str) and key else f"X{key if not named else index}"
        while name in names:
            name = f"{name}_"
        names.append(name)
    return names


def _categories(readers: Iterable[Reader], keys: list[Hashable]) -> dict[Hashable, frozenset]:
    """Return the values of the columns whose encoder refuses others."""
    known: dict[Hashable, frozenset] = {}
    for reader in readers:
        if _encodes(reader) and getattr(reader.step, "handle_unknown", None) == "error":
            values = frozenset(np.asarray(reader.step.categories_[reader.index]).tolist())
            values |= {None} if reader.imputed else set()
            key = keys[reader.position]
            known[key] = known.get(key, values) & values
    return known
