"""Copy arrays that a scikit-learn estimator might overwrite."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def may_overwrite(estimator: Any) -> bool:
    """Return whether an estimator might overwrite its input."""
    # scikit-learn's estimators do so with parameters such as copy_X=False, or through functions of users
    return any(_is_unsafe(name, value) for name, value in _parameters(estimator))


def _parameters(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield an estimator and all inner ones, with their names as parameters."""
    yield name, value
    if isinstance(value, BaseEstimator):
        for own, inner in value.get_params(deep=False).items():
            yield from _parameters(inner, own)
    elif isinstance(value, dict):  # candidates of a search
        for own, inner in value.items():
            yield from _parameters(inner, str(own).rpartition("__")[2])
    elif isinstance(value, list | tuple):  # steps, members, candidates
        for inner in value:
            yield from _parameters(inner, name)


def _is_unsafe(name: str, value: Any) -> bool:
    if isinstance(value, BaseEstimator):
        return not type(value).__module__.startswith("sklearn.")
    if isinstance(value, bool | np.bool_ | int):
        return not value if "copy" in name else bool(value) and ("overwrite" in name or "inplace" in name)
    return callable(value) or (hasattr(value, "fit") and not isinstance(value, BaseEstimator))


def untouched(estimator: Any, *arrays: Any) -> tuple[Any, ...]:
    """Return arrays for an estimator, which the caller keeps unchanged.

    Parameters
    ----------
    estimator : estimator
        Estimator that is fitted on them, or transforms them.
    *arrays : array-like, sparse matrix, frame or None
        X, y and so on.

    Returns
    -------
    tuple
        Copies where the estimator might overwrite them, or else the same objects.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.conversion import untouched
    >>> X = np.zeros((2, 1))
    >>> [untouched(StandardScaler(copy=copy), X)[0] is X for copy in (True, False)]
    [True, False]
    """
    if not may_overwrite(estimator):
        return arrays
    return tuple(array.copy("K") if type(array) is np.ndarray else copy.deepcopy(array) for array in arrays)
