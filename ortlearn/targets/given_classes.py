"""The parameter ``classes`` of ``fit`` and ``partial_fit``, compared with labels and model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..preprocessing.columns import refuse_masked
from .label_arrays import dense_labels

__all__ = ["PartialFitClasses", "expected_classes", "read_classes"]


class PartialFitClasses:
    """All classes of each column of y: sorted, or in the order of the scores of an ONNX file."""

    def __init__(self, given: Any, columns: list[np.ndarray]):
        self.given = given
        self.columns = columns

    @property
    def classes(self) -> Any:
        """Classes of y: one array, or a list with an array for each column."""
        return self.columns[0] if len(self.columns) == 1 else self.columns

    def checked_classes(self, y: Any) -> Any:
        """Return :attr:`classes`, or raise an error if y has other labels."""
        if y is not None:
            self._check_labels(y)
        return self.classes

    def _check_labels(self, y: Any) -> None:
        values = dense_labels(y)
        flat = len(self.columns) == 1
        columns = values.reshape(1, -1) if flat else values.reshape(len(values), -1).T
        for column, known in zip(columns, self.columns, strict=True):
            missing = np.setdiff1d(column, known)
            if len(missing):
                raise ValueError(
                    f"classes={self.given!r} must include all labels of y: {missing.tolist()} are missing. "
                    "Add them to classes, or remove their samples."
                )

    def check_known(self, known: Any, owner: str) -> None:
        """Raise an error if the known classes of the ``owner``, a model or an earlier call, differ.

        They are None for a model without classes, and a list of arrays for several outputs.
        """
        if known is None:
            return
        columns = known if isinstance(known, list) else [known] if len(self.columns) == 1 else None
        if columns is None:  # columns of zeros and ones, whose classes are the column indices
            columns = [np.array([0, 1])] * len(known)
        same = len(columns) == len(self.columns) and all(map(_is_same, self.columns, columns))
        if not same:
            raise ValueError(
                f"classes={self.given!r} differ from the classes of {owner}: {known}. Pass the same classes."
            )


def _is_same(classes: np.ndarray, known: np.ndarray) -> bool:
    return np.array_equal(np.unique(classes), np.unique(known))


def expected_classes(
    classes: Any, y: Any, estimator_type: str | None, is_onnx: bool = False
) -> PartialFitClasses | None:
    """Read the parameter ``classes`` of a call, or return None if it was not passed.

    The classes of an ONNX file are one array in the order of its scores, for any shape of y.
    """
    if classes is not None and estimator_type != "classifier":
        raise ValueError(
            "classes applies to classifiers only, and this model is not a classifier: omit the parameter."
        )
    ordered = None if classes is None or not is_onnx else _in_order(classes)
    return read_classes(classes, y) if ordered is None else ordered


def _in_order(classes: Any) -> PartialFitClasses | None:
    """Return classes in their given order if they are a single array, and None otherwise."""
    refuse_masked(classes, "classes")
    if not hasattr(classes, "__len__") or isinstance(classes, str | bytes | dict | set) or not len(classes):
        return None
    if any(np.ndim(own) for own in classes):
        return None
    values = np.asarray(classes)
    if len(np.unique(values)) < len(values):
        raise ValueError(
            f"classes={classes!r} must contain each class once, in the order of the model's scores."
        )
    return PartialFitClasses(classes, [values])


def read_classes(classes: Any, y: Any) -> PartialFitClasses | None:
    """Read the parameter ``classes`` for labels with the shape of y, or return None if it was not passed.

    Classes are one array in any order, or one array per column of y. For columns of zeros and ones they may
    also be the column indices, as in ``MLPClassifier``.
    """
    if classes is None:
        return None
    refuse_masked(classes, "classes")
    shape = y.shape if hasattr(y, "shape") else np.shape(y)
    n_columns = shape[1] if len(shape) > 1 else 1
    is_array = hasattr(classes, "__len__") and not isinstance(classes, str | bytes | dict | set)
    is_array = is_array and getattr(classes, "shape", (0,)) != ()
    nested = is_array and len(classes) > 0 and all(np.ndim(own) == 1 for own in classes)
    columns = [np.unique(own) for own in classes] if nested else [np.unique(classes)]
    if not is_array or not all(len(own) for own in columns):
        raise ValueError(f"classes={classes!r} must be an array with all classes of y in all calls.")
    if nested and len(shape) > 1 and len(columns) == n_columns:
        return PartialFitClasses(classes, columns)
    if not nested and n_columns == 1:
        return PartialFitClasses(classes, columns)
    if not nested and np.array_equal(columns[0], np.arange(n_columns)):
        return PartialFitClasses(classes, [np.array([0, 1])] * n_columns)
    expected = "one array of classes" if n_columns == 1 else f"{n_columns} arrays of classes"
    raise ValueError(f"classes={classes!r} must be {expected}: y has shape {tuple(shape)}.")
