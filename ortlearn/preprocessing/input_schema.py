"""The inputs of the graph of a scikit-learn estimator, from samples."""

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from scipy.sparse import issparse

from ..exceptions import ConversionError
from ..graphs import TensorType
from .columns import as_columns, check_has_columns, column_keys, column_kind, column_values, is_frame
from .readers import Reader, first_readers, selected_names
from .schema import Input, InputSchema, matrix_schema

#: Largest numbers up to which float32 and float64 represent all integers.
EXACT = {np.dtype(np.float32): 2**24, np.dtype(np.float64): 2**53}


def input_schema(X: Any, estimator: Any, dtype: Any = np.float32) -> InputSchema:
    """Return the inputs of the graph of a fitted estimator, from a few samples."""
    # Numbers are one matrix. Frames or arrays with text, categories or integers too large for the float type,
    # and frames whose columns are selected by name, have an input for each column that the estimator reads.
    dtype = np.dtype(dtype)
    if issparse(X):
        _check_count(X.shape[1], estimator)
        return matrix_schema(X.shape[1], dtype)
    X = as_columns(X)
    if not is_frame(X) and X.ndim > 2:  # images
        return matrix_schema(X.shape[1:], dtype)
    if not is_frame(X) and X.ndim == 1 and X.dtype.kind in "OUT":  # documents
        texts = Input("X", TensorType(TensorProto.STRING, (None, 1)))
        vectorized = any(reader.vectorizes for reader in first_readers(estimator, [0]))
        return InputSchema((texts,), n_features=1, documents=frozenset([None] if vectorized else []))
    names_of_fit = selected_names(estimator) if is_frame(X) else None
    by_name = names_of_fit is not None
    keys = column_keys(X) if names_of_fit is None else names_of_fit
    _check_count(len(keys), estimator)
    readers = list(first_readers(estimator, range(len(keys))))
    if by_name:
        check_has_columns(X, sorted({keys[reader.position] for reader in readers}, key=str))
    categories = _categories(readers, keys)
    if not by_name and _are_numbers(X, keys, readers, dtype):
        by_position: dict[Hashable, frozenset] = {keys.index(k): v for k, v in categories.items()}
        return replace(matrix_schema(len(keys), dtype), categories=by_position)
    if not is_frame(X) and X.dtype.kind in "UT":
        return matrix_schema(len(keys), object)
    documents = frozenset(keys[reader.position] for reader in readers if reader.vectorizes)
    inputs = _inputs_of_columns(X, keys, readers, dtype)
    return InputSchema(inputs, categories, len(keys), by_name, documents)


def _inputs_of_columns(
    X: Any, keys: list[Hashable], readers: list[Reader], dtype: np.dtype
) -> tuple[Input, ...]:
    """Return an input for each column that is read, under the name of the column if any."""
    inputs: dict[str, Input] = {}
    for number, position in enumerate(sorted({reader.position for reader in readers})):
        key = keys[position]
        name = key if is_frame(X) and isinstance(key, str) and key else f"X{number if is_frame(X) else key}"
        while name in inputs:
            name = f"{name}_"
        own = [reader for reader in readers if reader.position == position]
        known = TensorType(_elem_type(column_values(X, key), key, own, dtype), (None, 1))
        inputs[name] = Input(name, known, key, position)
    return tuple(inputs.values())


def _check_count(n_columns: int, estimator: Any) -> None:
    expected = getattr(estimator, "n_features_in_", 0) or n_columns  # CatBoost's are 0 after pickle
    if n_columns != expected:
        raise ValueError(
            f"X has {n_columns} features, but the model to train is expecting {expected} features as input."
        )


def _are_numbers(X: Any, keys: list[Hashable], readers: list[Reader], dtype: np.dtype) -> bool:
    """Return whether a floating-point matrix represents all columns exactly."""
    if not is_frame(X) and X.dtype.kind == "f":
        return True
    coded = {reader.position for reader in readers if reader.encodes}
    for position, key in enumerate(keys):
        values = column_values(X, key)
        kind = column_kind(values)
        if kind not in ("float", "integer", "bool"):
            return False
        if position in coded and kind == "integer" and np.abs(values).max(initial=0) > EXACT[dtype]:
            return False
    return True


def _elem_type(values: np.ndarray, key: Hashable, readers: Iterable[Reader], dtype: np.dtype) -> int:
    """Return the type of the input of a column."""
    kind = column_kind(values)
    if kind == "text":
        return TensorProto.STRING
    if kind == "other":
        raise ConversionError(
            f"Column {key!r} of X has values other than numbers or text, which ONNX does not support: "
            "convert it, or drop it."
        )
    if kind != "float" and all(reader.encodes and not reader.imputed for reader in readers):
        return TensorProto.INT64
    return helper.np_dtype_to_tensor_dtype(dtype)


def _categories(readers: Iterable[Reader], keys: list[Hashable]) -> dict[Hashable, frozenset]:
    """Return the accepted values of columns whose encoder refuses unknown ones."""
    known: dict[Hashable, frozenset] = {}
    for reader in readers:
        if reader.encodes and getattr(reader.step, "handle_unknown", None) == "error":
            values = frozenset(np.asarray(reader.step.categories_[reader.index]).tolist())
            values |= {None} if reader.imputed else set()
            key = keys[reader.position]
            known[key] = known.get(key, values) & values
    return known
