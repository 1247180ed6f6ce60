"""Names of columns, where every release of scikit-learn finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _get_feature_names

from .columns import is_frame

__all__ = ["with_readable_names"]


class _NamedRows:
    """Numbers of a frame, with the names of its columns where every release of scikit-learn finds them."""

    def __init__(self, frame: Any):
        self.frame = frame
        self.shape = frame.shape

    def __len__(self) -> int:
        return len(self.frame)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.frame, dtype=dtype)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> _NamedRows:
        return self

    def column_names(self) -> list[str]:
        return list(self.frame.columns)


def with_readable_names(X: Any) -> Any:
    """Return rows for scikit-learn's ``validate_data``, which reads names of columns off them.

    Releases before 1.9 find those of pandas and of frames with the interchange protocol, which polars
    gave up in 2.0.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    array-like, sparse matrix or frame
        The same, or an array-like with its names.

    Examples
    --------
    >>> import numpy
    >>> from ortlearn.preprocessing.named_rows import with_readable_names
    >>> X = numpy.zeros((2, 3))
    >>> with_readable_names(X) is X
    True
    """
    if not is_frame(X) or hasattr(X, "__dataframe__") or _get_feature_names(X) is not None:
        return X
    return _NamedRows(X) if all(isinstance(name, str) for name in X.columns) else X
