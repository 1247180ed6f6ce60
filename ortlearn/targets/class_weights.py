"""The parameter ``class_weight``: class weights as factors of sample weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from ..exceptions import limit_address
from .label_arrays import dense_labels, per_position
from .weight_sums import sums_of_labels

__all__ = [
    "ClassWeights",
    "check_no_balanced_weights",
    "class_weight_tables",
    "sum_with_classes",
    "times_class_weights",
    "weights_with_classes",
]

#: The weight of each class, for each column of y.
ClassWeights = Sequence[Mapping[Any, float]]
BALANCED = "balanced"


def check_no_balanced_weights(class_weight: Any) -> None:
    """Reject ``"balanced"`` for ``partial_fit``, which does not know the frequencies of the classes."""
    if isinstance(class_weight, str) and class_weight == BALANCED:
        raise ValueError(
            "class_weight='balanced' is not supported for partial_fit, which does not know the frequencies "
            "of the classes in all samples. Compute the weights once from a large enough sample by "
            "sklearn.utils.class_weight.compute_class_weight('balanced', classes=classes, y=y), and pass "
            f"class_weight=dict(zip(classes, weights)).{limit_address('balanced-weights')}"
        )


def class_weight_tables(
    class_weight: Any,
    estimator_type: str | None,
    y: Any,
    known: Any = None,
    sample_weight: np.ndarray | None = None,
) -> ClassWeights | None:
    """Return the weight of each class, as one dictionary per column of y; None without class weights.

    ``"balanced"`` is ``n / (k * n_c)`` for a class with ``n_c`` of ``n`` samples and ``k`` classes (King, G.
    and Zeng, L., "Logistic regression in rare events data", Political Analysis 9 (2001), 137-163). Samples
    are counted by their weights, so that a weight of two is equivalent to a repeated sample.

    ``known`` are the classes of the model, one array per column of y if there are several; by default those
    of y.
    """
    if class_weight is None:
        return None
    if estimator_type != "classifier":
        article = "an" if (estimator_type or "")[:1] in tuple("aeiou") else "a"
        kind = f"{article} {estimator_type.replace('_', ' ')}" if estimator_type else "not a classifier"
        raise ValueError(
            f"class_weight applies to classifiers only, and this model is {kind}: use sample_weight."
            f"{limit_address('weights-of-regressors')}"
        )
    if y is None:
        return None  # encoding the labels raises the error
    flat = isinstance(known, np.ndarray)
    columns = _columns(y, flat)
    classes = known if isinstance(known, list) else [known]
    if len(classes) != len(columns):
        classes = [None] * len(columns)
    specs = _for_columns(class_weight, len(columns))
    if any(isinstance(spec, str) for spec in specs):
        labels, sample_weight = sums_of_labels(y, sample_weight, flat)
        columns = _columns(labels, flat)
    return [
        _balanced(column, sample_weight)
        if isinstance(own, str)
        else _given(own, np.unique(column) if named is None else named)
        for own, column, named in zip(specs, columns, classes, strict=True)
    ]


def weights_with_classes(
    tables: ClassWeights | None, y: Any, sample_weight: np.ndarray | None
) -> np.ndarray | None:
    """Return sample weights times class weights; None without either.

    Classes without a weight have the weight 1; the weights of all columns of y are multiplied.
    """
    if tables is None or y is None:
        return sample_weight
    weights = times_class_weights(tables, y, sample_weight)
    if not weights.max() > 0:
        raise ValueError(
            "All weights are zero: class_weight, or its product with sample_weight, must be above 0 for at "
            "least one sample."
        )
    return weights


def times_class_weights(tables: ClassWeights, y: Any, sample_weight: np.ndarray | None) -> np.ndarray:
    """Return sample weights times class weights, which may all be zero."""
    columns = _columns(y, flat=len(tables) == 1)
    weights = np.ones(np.shape(y)[0]) if sample_weight is None else sample_weight.astype(np.float64)
    shape = weights.shape
    if len(columns[0]) != len(weights) or weights.ndim > 1:
        shape = np.shape(y)
        weights = per_position(weights, shape).ravel()
    for table, column in zip(tables, columns, strict=True):
        classes, numbers = np.unique(column, return_inverse=True)
        weights = weights * np.array([table.get(value, 1.0) for value in classes.tolist()])[numbers]
    return weights.reshape(shape)


def sum_with_classes(tables: ClassWeights, y: Any, sample_weight: np.ndarray | None) -> float:
    """Return the sum of sample weights times class weights."""
    labels, sums = sums_of_labels(y, sample_weight, flat=len(tables) == 1)
    return math.fsum(times_class_weights(tables, labels, sums).tolist())


def _columns(y: Any, flat: bool = False) -> list[np.ndarray]:
    """Return the columns of y; a single one with ``flat``, if all columns share their classes."""
    values = dense_labels(y)
    return [values.ravel()] if flat or values.ndim < 2 or values.shape[1] == 1 else list(values.T)


def _for_columns(spec: Any, count: int) -> list[Any]:
    """Return the specification of each column of y."""
    if isinstance(spec, str):
        return [spec] * count
    specs = [spec] if isinstance(spec, Mapping) else list(spec)
    if len(specs) == count:
        return specs
    raise ValueError(
        f"class_weight is for {len(specs)} column(s) of y, which has {count}: pass 'balanced' or a list of "
        f"{count} dictionaries, such as {[{0: 1, 1: 2}] * min(count, 2)}."
    )


def _given(weights: Mapping[Any, float], classes: np.ndarray) -> dict[Any, float]:
    """Check the weights of a dictionary, and return them as floats."""
    for name, weight in weights.items():
        if not isinstance(weight, Real) or not np.isfinite(weight) or weight < 0:
            raise ValueError(f"The class_weight of {name!r} must be a number >= 0, not {weight!r}.")
    values = np.asarray(classes).tolist()
    unknown = [name for name in weights if name not in values]
    missing = [value for value in values if value not in weights]
    if unknown and missing:  # unknown keys alone may be classes of another fold
        raise ValueError(
            f"class_weight has the unknown classes {unknown}: its keys must be among the classes {values}."
        )
    return {name: float(weight) for name, weight in weights.items()}


def _balanced(column: np.ndarray, sample_weight: np.ndarray | None) -> dict[Any, float]:
    """Return the balanced weights of the classes of a column."""
    classes, numbers = np.unique(column, return_inverse=True)
    counts = np.bincount(numbers, sample_weight, minlength=len(classes))
    seen = counts > 0  # samples of weight zero are ignored
    shares = np.divide(counts.sum(), seen.sum() * counts, out=np.ones(len(classes)), where=seen)
    return dict(zip(classes.tolist(), shares.tolist(), strict=True))
