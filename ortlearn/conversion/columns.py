"""Columns of frames, arrays and dictionaries, as the inputs of a graph take them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from .inputs import Input, InputSchema

__all__ = [
    "as_columns",
    "check_categories",
    "column_keys",
    "column_kind",
    "column_values",
    "count_rows",
    "is_frame",
    "is_missing",
    "read_columns",
    "with_new_columns",
]

NUMBERS = {"f": "float", "i": "integer", "u": "integer", "b": "bool"}
#: Texts that stand for a missing one in a graph, as ``str`` writes them.
MISSING = {type(None): "None"}


def is_frame(X: Any) -> bool:
    """Tell whether X has named columns, as pandas and polars have.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    bool
        Whether it has.

    Examples
    --------
    >>> import pandas
    >>> from ortlearn.conversion.columns import is_frame
    >>> is_frame(pandas.DataFrame({"a": [1]})), is_frame([[1]])
    (True, False)
    """
    return hasattr(X, "columns") and hasattr(X, "shape")


def as_columns(X: Any) -> np.ndarray:
    """Return a list or an array as an array whose columns keep their kinds."""
    array = np.asarray(X)
    if array.dtype.kind in "UT" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)  # a list of numbers and texts would become texts
    return array


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a frame, a list, or a dictionary of columns.

    Parameters
    ----------
    X : array-like, frame or mapping of str to array-like
        Rows.

    Returns
    -------
    int
        Their number.

    Raises
    ------
    ValueError
        If the columns of a dictionary are not equally long.

    Examples
    --------
    >>> from ortlearn.conversion.columns import count_rows
    >>> count_rows({"a": [1, 2], "b": ["x", "y"]})
    2
    """
    if not isinstance(X, Mapping):
        return _num_samples(X)
    lengths = {name: _num_samples(values) for name, values in X.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"The columns of X must be equally long, they have {lengths} rows.")
    return next(iter(lengths.values()))


def column_keys(X: Any) -> list[Hashable]:
    """Return the names of the columns of a frame or a dictionary, the positions of those of an array.

    Parameters
    ----------
    X : frame, mapping or ndarray of shape (n_samples, n_features) or (n_samples,)
        Rows.

    Returns
    -------
    list of hashable
        Key of each column.

    Raises
    ------
    ValueError
        If two columns of a frame have one name.

    Examples
    --------
    >>> import pandas
    >>> from ortlearn.conversion.columns import column_keys
    >>> column_keys(pandas.DataFrame({"a": [1], "b": [2]}))
    ['a', 'b']
    """
    if isinstance(X, Mapping):
        return list(X)
    if not is_frame(X):
        return list(range(X.shape[1])) if X.ndim > 1 else [0]
    keys = list(X.columns)
    if len(set(keys)) < len(keys):
        twice = sorted({str(key) for key in keys if keys.count(key) > 1})
        raise ValueError(f"X has several columns named {twice}: give each a name of its own.")
    return keys


def column_values(X: Any, key: Hashable) -> np.ndarray:
    """Return a column as a numpy array.

    Parameters
    ----------
    X : frame, mapping or ndarray
        Rows.
    key : hashable
        Name or position.

    Returns
    -------
    ndarray of shape (n_samples, ...)
        Values, as X holds them.

    Examples
    --------
    >>> import pandas
    >>> from ortlearn.conversion.columns import column_values
    >>> column_values(pandas.DataFrame({"a": ["x", None]}, dtype=object), "a")
    array(['x', None], dtype=object)
    """
    if isinstance(X, Mapping) or is_frame(X):
        return np.asarray(X[key])
    return X if X.ndim == 1 else X[:, key]


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for a missing one: None, NaN, or what pandas has for it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and value != value


def column_kind(values: np.ndarray) -> str:
    """Return what a column holds.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Values.

    Returns
    -------
    {"float", "integer", "bool", "text", "other"}
        Numbers with missing ones among them are ``"float"``; a mixture of text and numbers, dates and
        anything else are ``"other"``.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.conversion.columns import column_kind
    >>> column_kind(np.array(["a", None], dtype=object)), column_kind(np.array([1, None], dtype=object))
    ('text', 'float')
    """
    if values.dtype.kind in NUMBERS:
        return NUMBERS[values.dtype.kind]
    if values.dtype.kind in "UT":
        return "text"
    if values.dtype.kind != "O":
        return "other"
    items = values.ravel().tolist()
    present = [value for value in items if not is_missing(value)]
    types = {type(value) for value in present}
    if types and all(issubclass(kind, str) for kind in types):
        return "text"
    if not all(issubclass(kind, float | int | np.number | np.bool_) for kind in types):
        return "other"
    if len(present) == len(items) and types <= {bool, np.bool_}:
        return "bool"
    whole = len(present) == len(items) and all(issubclass(k, int | np.integer) for k in types)
    return "integer" if whole else "float"


def with_new_columns(X: Any, change: Callable[[np.ndarray, str], Any]) -> Any:
    """Return a frame or an array with other values in its columns.

    Parameters
    ----------
    X : frame or ndarray
        Rows.
    change : callable
        Takes the values of a column and their kind, returns the new values.

    Returns
    -------
    frame or ndarray
        A new object of the same type.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.conversion.columns import with_new_columns
    >>> with_new_columns(np.array([[1.0, 2.0]]), lambda values, kind: -values)
    array([[-1., -2.]])
    """
    new = {}
    for key in column_keys(X):
        values = column_values(X, key)
        new[key] = change(values, column_kind(values))
    if is_frame(X):
        return type(X)(new)
    return new[0] if X.ndim == 1 else np.stack([np.asarray(v, dtype=X.dtype) for v in new.values()], axis=1)


def read_columns(X: Any, schema: InputSchema) -> dict[str, np.ndarray]:
    """Return what each input of a graph takes.

    Parameters
    ----------
    X : frame, mapping of str to array-like, or ndarray
        Rows.
    schema : InputSchema
        Inputs, and the columns they take.

    Returns
    -------
    dict of str to ndarray
        Array of each input, of the input's type and rank.

    Raises
    ------
    ValueError
        If a column is missing, or has values of another kind.

    Examples
    --------
    >>> import pandas
    >>> from ortlearn.conversion.columns import read_columns
    >>> from ortlearn.conversion.inputs import schema_of_graph
    >>> from ortlearn.graphs import TensorType
    >>> schema = schema_of_graph({"age": TensorType(1, ("N", 1)), "city": TensorType(8, ("N", 1))})
    >>> read_columns(pandas.DataFrame({"city": ["Oslo"], "age": [3]}), schema)
    {'age': array([[3.]], dtype=float32), 'city': array([['Oslo']], dtype=object)}
    """
    if isinstance(X, Mapping) or is_frame(X):
        known = set(column_keys(X))
        missing = [item.column for item in schema.inputs if item.column not in known]
        if missing and not schema.is_matrix:
            raise ValueError(f"Columns are missing: {missing}; X has {sorted(map(str, known))}.")
    else:
        X = np.asarray(X)
    return {item.name: _read(X, item, schema.categories.get(item.column)) for item in schema.inputs}


def _read(X: Any, item: Input, categories: frozenset | None) -> np.ndarray:
    values = np.asarray(X) if item.column is None else column_values(X, item.column)
    if categories is not None:
        _check_categories(values, item.column, categories)
    where = "X" if item.column is None else f"Column {item.column!r} of X"
    if item.dtype == object:
        array = _as_text(values)
    elif item.dtype.kind in "iu":
        array = _as_integers(values, item.dtype, where)
    else:
        array = _as_numbers(values, item.dtype, where)
    return _with_rank(array, item, where)


def _with_rank(array: np.ndarray, item: Input, where: str) -> np.ndarray:
    """Return a column as a matrix or a vector, as the graph takes it."""
    shape = item.known.shape
    if shape is not None and len(shape) == 2 and array.ndim == 1:
        array = array.reshape(-1, 1)
    elif shape is not None and len(shape) == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    fixed = [] if shape is None else list(zip(array.shape[1:], shape[1:], strict=False))
    if (shape is not None and array.ndim != len(shape)) or any(
        isinstance(want, int) and want != have for have, want in fixed
    ):
        raise ValueError(f"{where} has the shape {array.shape}, the model is expecting {shape} for it.")
    return np.ascontiguousarray(array)


def _as_text(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "UT":
        return values.astype(object)
    items = values.ravel().tolist()
    texts = [value if type(value) is str else _text(value) for value in items]
    return np.array(texts, dtype=object).reshape(values.shape)


def _text(value: Any) -> str:
    """Write a value as a text; missing ones as the converted encoders know them."""
    if is_missing(value) and value is not None:
        return "nan"
    return MISSING.get(type(value), str(value))


def _as_numbers(values: np.ndarray, dtype: np.dtype, where: str) -> np.ndarray:
    if values.dtype.kind not in NUMBERS:
        kind = column_kind(values)
        if kind not in ("float", "integer", "bool"):
            raise ValueError(f"{where} must hold numbers, it holds {_example(values)}.")
        items = [np.nan if is_missing(value) else value for value in values.ravel().tolist()]
        values = np.array(items, dtype=np.float64).reshape(values.shape)
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)


def _as_integers(values: np.ndarray, dtype: np.dtype, where: str) -> np.ndarray:
    if values.dtype.kind in "iub":
        return values.astype(dtype, copy=False)
    numbers = _as_numbers(values, np.dtype(np.float64), where)
    if not (np.isfinite(numbers) & (numbers == np.round(numbers))).all():
        raise ValueError(
            f"{where} held whole numbers when the model was fitted; now some are missing or have decimals."
        )
    return numbers.astype(dtype)


def _example(values: np.ndarray) -> str:
    bad = [v for v in values.ravel().tolist() if not is_missing(v) and not isinstance(v, float | int)]
    return f"{bad[0]!r}, among others" if bad else f"values of type {values.dtype}"


def check_categories(rows: Any, schema: InputSchema) -> None:
    """Raise an error if a matrix has values that an encoder refuses.

    Parameters
    ----------
    rows : ndarray or sparse matrix of shape (n_samples, n_features)
        Rows.
    schema : InputSchema
        What is known of their columns.

    Raises
    ------
    ValueError
        If it has.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.conversion import InputSchema, check_categories
    >>> check_categories(np.array([[1.0], [2.0]]), InputSchema((), {0: frozenset([1.0, 2.0])}))
    """
    for column, categories in schema.categories.items():
        values = rows[:, [column]].toarray() if hasattr(rows, "toarray") else rows[:, column]
        _check_categories(values, column, categories)


def _check_categories(values: np.ndarray, column: Hashable | None, categories: frozenset) -> None:
    found = set(values.ravel().tolist())
    fills = any(map(is_missing, categories))
    unknown = [value for value in found - categories if not (fills and is_missing(value))]
    if unknown:
        some = sorted(map(str, unknown))[:5]
        raise ValueError(
            f"Found unknown categories {some} in column {column!r}: the encoder was fitted without them. "
            "Set handle_unknown='ignore' (or 'use_encoded_value') to train and predict on others."
        )
