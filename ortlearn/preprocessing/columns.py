"""Columns of frames, arrays and dictionaries: their names, their values, their kinds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _get_feature_names, _num_samples

from .sparse_checks import check_sparse

__all__ = [
    "as_array_like",
    "as_columns",
    "column_keys",
    "column_kind",
    "column_values",
    "count_rows",
    "is_frame",
    "is_missing",
    "refuse_masked",
    "with_new_columns",
    "with_readable_names",
]

NUMBERS = {"f": "float", "i": "integer", "u": "integer", "b": "bool"}


def is_frame(X: Any) -> bool:
    """Return whether X has named columns, as pandas and polars have.

    Examples
    --------
    >>> import pandas
    >>> from ortlearn.preprocessing.columns import is_frame
    >>> is_frame(pandas.DataFrame({"a": [1]})), is_frame([[1]])
    (True, False)
    """
    return hasattr(X, "columns") and hasattr(X, "shape")


def refuse_masked(values: Any, name: str) -> None:
    """Raise a ValueError for a masked array, or a list or dictionary with one: its mask would be ignored."""
    parts = list(values.values()) if isinstance(values, Mapping) else []
    parts = list(values) if isinstance(values, list | tuple) else parts
    if any(isinstance(part, np.ma.MaskedArray) for part in (values, *parts)):
        raise ValueError(
            f"{name} is a masked array, and its mask would be ignored: pass an ordinary array, such as "
            "X.filled(numpy.nan) with an imputer in the pipeline, or the samples without masked values."
        )


def as_array_like(X: Any, name: str = "X") -> Any:
    """Return X as an object whose samples can be counted and selected.

    That is a CSR matrix for sparse formats other than CSR and CSC (one of them is a dictionary), an array for
    an object that can only be converted to one, X itself otherwise. ``name`` is for messages.

    Raises
    ------
    ValueError
        If X is a masked array.

    Examples
    --------
    >>> from scipy.sparse import dok_array
    >>> from ortlearn.preprocessing.columns import as_array_like
    >>> as_array_like(dok_array((3, 2))).format
    'csr'
    """
    refuse_masked(X, name)
    if issparse(X):
        check_sparse(X)
        return X if X.format in ("csr", "csc") else X.tocsr()
    if hasattr(X, "shape") or hasattr(X, "__len__") or not hasattr(X, "__array__"):
        return X
    return np.asarray(X)


def as_columns(X: Any) -> np.ndarray:
    """Return a list or an array as an array whose columns keep their kinds."""
    array = np.asarray(X)
    if array.dtype.kind in "UT" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)  # a list of numbers and texts would become texts
    return array


def count_rows(X: Any) -> int:
    """Return the number of samples of an array, a frame, a list, or a dictionary of columns.

    Raises
    ------
    ValueError
        If the columns of a dictionary are not equally long.

    Examples
    --------
    >>> from ortlearn.preprocessing.columns import count_rows
    >>> count_rows({"a": [1, 2], "b": ["x", "y"]})
    2
    """
    if not isinstance(X, Mapping) or issparse(X):
        return _num_samples(X)
    lengths = {name: _num_samples(values) for name, values in X.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"The columns of X must be equally long, they have {lengths} samples.")
    return next(iter(lengths.values()))


def column_keys(X: Any) -> list[Hashable]:
    """Return the names of the columns of a frame or a dictionary, the positions of those of an array.

    Raises
    ------
    ValueError
        If two columns of a frame have one name.

    Examples
    --------
    >>> import pandas
    >>> from ortlearn.preprocessing.columns import column_keys
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
    """Return a column as an array of the values that X holds.

    Examples
    --------
    >>> import pandas
    >>> from ortlearn.preprocessing.columns import column_values
    >>> column_values(pandas.DataFrame({"a": ["x", None]}, dtype=object), "a")
    array(['x', None], dtype=object)
    """
    if isinstance(X, Mapping) or is_frame(X):
        return np.asarray(X[key])
    return X if X.ndim == 1 else X[:, key]


def is_missing(value: Any) -> bool:
    """Return whether a value stands for a missing one: None, NaN, or pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and value != value


def column_kind(values: np.ndarray) -> str:
    """Return the kind of a column: ``"float"``, ``"integer"``, ``"bool"``, ``"text"`` or ``"other"``.

    Numbers with missing ones among them are ``"float"``; a mixture of text and numbers, dates and anything
    else are ``"other"``.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.preprocessing.columns import column_kind
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
    """Return a frame or an array of the same type with other values in its columns.

    ``change`` takes the values of a column and their kind, and returns the new values.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.preprocessing.columns import with_new_columns
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


class _NamedSamples:
    """Numbers of a frame, with the names of its columns where every release of scikit-learn finds them."""

    def __init__(self, frame: Any):
        self.frame = frame
        self.shape = frame.shape

    def __len__(self) -> int:
        return len(self.frame)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.frame, dtype=dtype)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> _NamedSamples:
        return self

    def column_names(self) -> list[str]:
        return list(self.frame.columns)


def with_readable_names(X: Any) -> Any:
    """Return samples for scikit-learn's ``validate_data``, which reads the names of their columns.

    Releases before 1.9 find those of pandas and of frames with the interchange protocol, which polars gave up
    in 2.0: other frames become an array-like with their names.

    Examples
    --------
    >>> import numpy
    >>> from ortlearn.preprocessing.columns import with_readable_names
    >>> X = numpy.zeros((2, 3))
    >>> with_readable_names(X) is X
    True
    """
    if not is_frame(X) or hasattr(X, "__dataframe__") or _get_feature_names(X) is not None:
        return X
    return _NamedSamples(X) if all(isinstance(name, str) for name in X.columns) else X
