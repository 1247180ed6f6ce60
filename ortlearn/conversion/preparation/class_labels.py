"""Classes of types that skl2onnx does not know, told to it as others of the same value."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

__all__ = ["with_plain_classes"]

CLASSES = "classes_"


def with_plain_classes(estimator: Any) -> Any:
    """Return a fitted classifier whose classes, and those of its members, are int64 or text.

    Unsigned integers and booleans become int64. So do whole numbers stored as floats, and texts of
    different lengths one type, where a classifier has several outputs: their labels are one matrix.

    Parameters
    ----------
    estimator : estimator
        Fitted; it is not changed.

    Returns
    -------
    estimator
        The same one where nothing is to be done, a copy that is good for conversion otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from ortlearn.conversion.preparation.class_labels import with_plain_classes
    >>> model = GaussianNB().fit([[0.0], [1.0]], np.array([3, 7], dtype=np.uint8))
    >>> with_plain_classes(model).classes_, model.classes_
    (array([3, 7]), array([3, 7], dtype=uint8))
    """
    several = isinstance(estimator, MultiOutputClassifier | ClassifierChain)
    kinds = "ubfU" if several else "ub"
    if not any(array.dtype.kind in kinds for array in _classes_of(estimator)):
        return estimator
    estimator = copy.deepcopy(estimator)
    for owner in _owners(estimator):
        value = vars(owner)[CLASSES]
        plain = [_plain(a, kinds) for a in value] if isinstance(value, list) else _plain(value, kinds)
        vars(owner)[CLASSES] = plain
    return estimator


def _plain(classes: Any, kinds: str) -> Any:
    classes = np.asarray(classes)
    if classes.dtype.kind not in kinds:
        return classes
    if classes.dtype.kind == "U":
        return classes.astype(object)
    return classes.astype(np.int64)


def _classes_of(estimator: Any) -> Iterator[np.ndarray]:
    """Yield the classes that an estimator and its members keep."""
    for owner in _owners(estimator):
        value = vars(owner)[CLASSES]
        yield from map(np.asarray, value if isinstance(value, list) else [value])


def _owners(estimator: Any) -> Iterator[Any]:
    """Yield the objects inside a fitted estimator that keep classes: members, encoders of labels."""
    waiting, seen = [estimator], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, np.ndarray) and value.dtype == object:
            waiting += [part for part in value.ravel() if isinstance(part, BaseEstimator)]
        elif _has_parts(value) and id(value) not in seen:
            seen.add(id(value))
            if vars(value).get(CLASSES) is not None:
                yield value
            waiting += [part for name, part in vars(value).items() if name != CLASSES]


def _has_parts(value: Any) -> bool:
    # calibrated classifiers are no estimators, but keep some
    own = type(value).__module__.startswith("sklearn.") and hasattr(value, "__dict__")
    return not isinstance(value, type) and (own or isinstance(value, BaseEstimator))
