"""Arguments of interval and set estimators: labels, groups, and samples that were trained on."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, column_or_1d

from ..exceptions import CalibrationWarning, warn_user
from ..preprocessing.columns import count_samples
from ..targets.label_arrays import indices_of

__all__ = [
    "check_groups",
    "group_rows",
    "kept_groups",
    "numeric_labels",
    "sample_keys",
    "warn_of_trained",
]

REUSED = (
    "{:.0%} of the calibration samples are training samples, on which errors are smaller than on new ones: "
    "the coverage is not promised. Pass samples that the model has not been fitted on."
)
#: Share of calibration samples among the training samples that is an error of the caller.
MOST_SHARED = 0.5


def numeric_labels(y: Any, name: str = "y") -> np.ndarray:
    """Return labels as float64 of shape (n,)."""
    if y is None:
        raise ValueError(f"{name} is missing: requires y to be passed, but the target y is None.")
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name=name)
    return column_or_1d(y, warn=True)


def check_groups(groups: Any, n: int) -> np.ndarray | None:
    """Return groups as texts or integers of shape (n,)."""
    if groups is None:
        return None
    found = column_or_1d(np.asarray(groups))
    if found.shape != (n,):
        raise ValueError(f"groups has {len(found)} values for {n} samples: pass one for each sample.")
    if found.dtype.kind in "iub":
        return found.astype(np.int64)
    if found.dtype.kind in "UO" and all(isinstance(value, str) for value in found.tolist()):
        return found.astype(str)
    raise ValueError("groups must be all texts or all integers: convert them, such as with astype(str).")


def kept_groups(groups: np.ndarray | None, smallest: int) -> tuple:
    """Return the groups of sufficient size."""
    if groups is None:
        return ()
    names, counts = np.unique(groups, return_counts=True)
    return tuple(names[counts >= smallest].tolist())


def group_rows(groups: np.ndarray | None, known: tuple, n: int) -> np.ndarray:
    """Return the number of the group of each sample, and the number after the last one for any other."""
    if groups is None or not known:
        return np.full(n, len(known), dtype=np.int64)
    return indices_of(groups, np.array(known)) % (len(known) + 1)  # -1 is the last number


def sample_keys(X: Any, y: Any) -> np.ndarray:
    """Return a number for each sample that is the same for equal samples."""
    if issparse(X):
        X = X.tocsr()
        rows = [X[number].toarray().tobytes() for number in range(X.shape[0])]
    elif isinstance(X, dict):
        parts = [sample_keys(value, y) for value in X.values()]
        rows = [row.tobytes() for row in np.stack(parts, axis=1)]
    else:
        array = np.asarray(X)
        is_plain = array.dtype.kind in "fiub"
        array = array.astype(np.float64) if is_plain else array
        rows = [row.tobytes() if is_plain else repr(np.atleast_1d(row).tolist()).encode() for row in array]
    labels = [repr(label).encode() for label in np.asarray(y).tolist()]
    digests = [hashlib.blake2b(a + b, digest_size=8).digest() for a, b in zip(rows, labels, strict=True)]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def warn_of_trained(trained: np.ndarray, X: Any, y: Any) -> None:
    """Warn if calibration samples are training samples, more often than these repeat."""
    if not count_samples(X) or not len(trained):
        return
    shared = float(np.isin(sample_keys(X, y), trained).mean())
    repeats = 1 - len(np.unique(trained)) / len(trained)
    if shared > MOST_SHARED + repeats:
        warn_user(REUSED.format(shared), CalibrationWarning)
