"""Names, values and kinds of the columns of frames, arrays and dictionaries."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _get_feature_names, _num_samples

#: Number of the CPU among the devices of DLPack.
CPU_OF_DLPACK = 1
NUMBERS = {"f": "float", "i": "integer", "u": "integer", "b": "bool"}


def is_frame(X: Any) -> bool:
    """Return whether X is a frame, such as of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def refuse_masked(values: Any, name: str) -> None:
    """Raise a ValueError for a masked array, and for a list or dictionary with one."""
    parts = list(values.values()) if isinstance(values, Mapping) else []
    parts = list(values) if isinstance(values, list | tuple) else parts
    if any(isinstance(part, np.ma.MaskedArray) for part in (values, *parts)):
        raise ValueError(
            f"{name} is a masked array, whose mask would be ignored: pass an ordinary array, such as "
            "X.filled(numpy.nan) with an imputer in the pipeline, or the samples without masked values."
        )


def as_array_like(X: Any, name: str = "X") -> Any:
    """Return X as an array, a CSR or CSC matrix, a frame, a series, a list or a dictionary."""
    refuse_masked(X, name)
    X = (
        {key: from_tensor(values) for key, values in X.items()}
        if isinstance(X, dict) and not issparse(X)
        else from_tensor(X)
    )
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        return {field: X[field] for field in X.dtype.names}
    if issparse(X):
        return _checked_sparse(X)
    if is_frame(X):
        if not len(column_keys(X)):  # raises an error for repeated names
            raise ValueError(f"{name} is a frame without columns: pass at least one.")
        return X
    is_plain = not hasattr(X, "dtype") or isinstance(X.dtype, np.dtype) or hasattr(X, "iloc")
    if not hasattr(X, "__array__") or (is_plain and (hasattr(X, "shape") or hasattr(X, "__len__"))):
        return X
    array = np.asarray(X)
    is_nullable = hasattr(getattr(X, "dtype", None), "na_value") and array.dtype.kind in "iub"
    return array.astype(np.float64) if is_nullable else array  # as in scikit-learn


def from_tensor(values: Any) -> Any:
    """Return a tensor of another package, such as torch or JAX, as an array; other values unchanged.

    The memory of a tensor on the CPU is shared by DLPack, and copied from other devices.
    """
    is_tensor = hasattr(values, "__dlpack_device__") and hasattr(values, "shape")
    if not is_tensor or isinstance(values, np.ndarray) or is_frame(values) or hasattr(values, "iloc"):
        return values
    tensor = values.detach() if hasattr(values, "detach") else values  # of torch, with a gradient
    if tensor.__dlpack_device__()[0] != CPU_OF_DLPACK and hasattr(tensor, "cpu"):
        tensor = tensor.cpu()
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):  # another device, or no type of NumPy
        tensor = tensor.get() if hasattr(tensor, "get") else tensor  # of CuPy
        wide = tensor.float() if hasattr(tensor, "float") else tensor  # bfloat16 of torch
        array = np.asarray(wide)
        return array if array.dtype.kind in NUMBERS else np.asarray(wide, dtype=np.float32)


def _checked_sparse(X: Any) -> Any:
    """Return a CSR or CSC matrix; raise a ValueError for indices outside its shape."""
    try:
        if X.format == "coo":  # the constructor checks indices, the conversion does not
            type(X)((X.data, X.coords if hasattr(X, "coords") else (X.row, X.col)), shape=X.shape)
        if X.format == "lil" and list(map(len, X.rows)) != list(map(len, X.data)):
            raise ValueError("the numbers of values and indices differ")
        if X.format in ("csr", "csc", "bsr"):
            copy.copy(X).check_format(full_check=True)  # may change the object, but not its arrays
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
            X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(
            f"The sparse matrix of shape {X.shape} is invalid ({error}): construct it from indices "
            "inside its shape."
        ) from error
    return X


def shape_of(values: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array-like; raise a ValueError for samples of different shapes."""
    if hasattr(values, "shape") and not holds_arrays(values):
        return tuple(values.shape)
    try:
        return np.shape(list(values) if hasattr(values, "shape") else values)
    except ValueError as error:
        lengths = sorted({len(value) for value in values if hasattr(value, "__len__")})
        known = f", lengths of {lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else ""
        raise ValueError(
            f"The samples of {name} differ in shape{known}: pad them to one shape by numpy.pad. To ignore "
            "the padding, pass a sample_weight of zero for it, of the shape of y, or mask it by an input."
        ) from error


def holds_arrays(values: Any) -> bool:
    """Return whether an array contains arrays or lists."""
    is_flat = isinstance(values, np.ndarray) and values.dtype.kind == "O" and values.ndim == 1
    return is_flat and len(values) > 0 and isinstance(values[0], np.ndarray | list | tuple)


def as_columns(X: Any) -> Any:
    """Return a list as an array that preserves numbers next to text; other samples unchanged."""
    if is_frame(X) or isinstance(X, Mapping):
        return X
    is_text = isinstance(X, list) and len(X) > 0 and isinstance(X[0], str)
    array = np.asarray(X, dtype=object if is_text else None)
    if array.dtype.kind in "UT" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)
    return array


def count_samples(X: Any) -> int:
    """Return the number of samples of an array, a frame, a list or a dictionary of columns."""
    if not isinstance(X, Mapping) or issparse(X):
        return _num_samples(X)
    lengths = {name: _num_samples(values) for name, values in X.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"The columns of X differ in length ({lengths}): pass columns of equal length.")
    return next(iter(lengths.values()))


def column_keys(X: Any) -> list[Hashable]:
    """Return the names of columns of a frame or a dictionary, or the positions of columns of an array."""
    if isinstance(X, Mapping):
        return list(X)
    if not is_frame(X):
        return list(range(X.shape[1])) if X.ndim > 1 else [0]
    keys = list(X.columns)
    if len(set(keys)) < len(keys):
        repeated = sorted({str(key) for key in keys if keys.count(key) > 1})
        raise ValueError(f"X has several columns named {repeated}: rename them.")
    return keys


def check_has_columns(X: Any, wanted: Iterable[Hashable]) -> None:
    """Raise a ValueError if X lacks columns."""
    known = column_keys(X)
    missing = [key for key in wanted if key not in known]
    if missing:
        raise ValueError(f"Columns are missing: {missing}; X has {sorted(map(str, known))}.")


def column_values(X: Any, key: Hashable) -> np.ndarray:
    """Return the values of a column as an array."""
    if isinstance(X, Mapping):
        shape_of(X[key], f"column {key!r} of X")
    if isinstance(X, Mapping) or is_frame(X):
        return np.asarray(X[key])
    return X if X.ndim == 1 else X[:, key]


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or NA or NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and value != value


def missing_samples(values: np.ndarray) -> np.ndarray:
    """Return the positions of missing values."""
    if values.dtype.kind == "f":
        return np.flatnonzero(np.isnan(values))
    items = values.ravel().tolist() if values.dtype.kind == "O" else ()
    if set(map(type, items)) <= {str}:
        return np.empty(0, dtype=int)
    return np.array([row for row, value in enumerate(items) if is_missing(value)], dtype=int)


def column_kind(values: np.ndarray) -> str:
    """Return the kind of a column: "float", "integer", "bool", "text" or "other" (dates, mixtures)."""
    if values.dtype.kind in NUMBERS:
        return NUMBERS[values.dtype.kind]
    if values.dtype.kind in "UT":
        return "text"
    if values.dtype.kind != "O":
        return "other"
    items = values.ravel().tolist()
    if set(map(type, items)) == {str}:
        return "text"
    types = {type(value) for value in items if not is_missing(value)}
    if types and all(issubclass(kind, str) for kind in types):
        return "text"
    if not all(issubclass(kind, float | int | np.number | np.bool_) for kind in types):
        return "other"
    if any(map(is_missing, items)):
        return "float"
    if types <= {bool, np.bool_}:
        return "bool"
    return "integer" if all(issubclass(kind, int | np.integer) for kind in types) else "float"


def other_kinds(X: Any) -> dict[Hashable, str]:
    """Return the kind of each column with texts, dates or durations, by name or position."""
    if issparse(X) or len(X.shape if hasattr(X, "shape") else np.shape(X[:1])) != 2:
        return {}
    kinds = {key: _other_kind(values) for key, values in columns_of(X)}
    return {key: kind for key, kind in kinds.items() if kind}


def _other_kind(values: np.ndarray) -> str:
    kind = column_kind(values)
    if kind != "other" or values.dtype.kind in "mM":
        return {"m": "durations", "M": "dates"}.get(values.dtype.kind, kind if kind == "text" else "")
    items = [value for value in values.ravel().tolist() if not is_missing(value)]
    if all(isinstance(value, date) for value in items):
        return "dates"
    if all(isinstance(value, timedelta) for value in items):
        return "durations"
    return "text among other values" if any(isinstance(value, str) for value in items) else ""


def columns_of(X: Any) -> Iterator[tuple[Hashable, np.ndarray]]:
    """Yield the name or position, and the values, of each column."""
    X = as_columns(X)
    yield from ((key, column_values(X, key)) for key in column_keys(X))


def with_new_columns(X: Any, change: Callable[[Hashable, np.ndarray, str], Any]) -> Any:
    """Return a frame or an array of the same type, with columns ``change(key, values, kind)``."""
    old = dict(columns_of(X))
    new = {key: change(key, values, column_kind(values)) for key, values in old.items()}
    if is_frame(X):
        return type(X)({key: _with_dtype_of(X[key], old[key], values) for key, values in new.items()})
    return new[0] if X.ndim == 1 else np.stack([np.asarray(v, dtype=X.dtype) for v in new.values()], axis=1)


def _with_dtype_of(column: Any, old: np.ndarray, new: Any) -> Any:
    """Return new values of a column of a frame, as categories of pandas if unchanged or all missing."""
    if str(column.dtype) != "category":
        return new
    if new is old:
        return column
    all_missing = len(missing_samples(np.asarray(new))) == len(old)
    return type(column)(new, index=column.index, dtype=column.dtype) if all_missing else new


class _NamedSamples:
    """Values of a frame, with column names that every release of scikit-learn finds."""

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
    """Return samples with column names that scikit-learn's ``validate_data`` finds."""
    # Before 1.9, it only finds those of pandas and of the interchange protocol, which polars 2.0 removed.
    if not is_frame(X) or hasattr(X, "__dataframe__") or _get_feature_names(X) is not None:
        return X
    return _NamedSamples(X) if all(isinstance(name, str) for name in X.columns) else X
