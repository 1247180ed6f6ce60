"""The parameter ``class_weight``: weights of classes become weights of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from ..exceptions import ConversionError
from .label_arrays import per_position
from .weight_sums import scale_of, sums_of_labels

if TYPE_CHECKING:
    from .problem import Problem

__all__ = [
    "ClassWeights",
    "check_no_balanced_weights",
    "class_weight_tables",
    "objective_weights",
    "sum_with_classes",
    "times_class_weights",
    "weights_with_classes",
]

#: The weight of each class, for each column of y.
ClassWeights = Sequence[Mapping[Any, float]]
BALANCED = "balanced"


def check_no_balanced_weights(class_weight: Any) -> None:
    """Reject ``"balanced"`` for a stream: a batch does not tell how frequent the classes are."""
    if isinstance(class_weight, str) and class_weight == BALANCED:
        raise ValueError(
            "class_weight='balanced' is not supported for partial_fit: the frequencies of the classes are "
            "those of all rows. Compute them once, of a large enough sample, by "
            "sklearn.utils.class_weight.compute_class_weight('balanced', classes=classes, y=y), and pass "
            "class_weight=dict(zip(classes, weights))."
        )


def class_weight_tables(
    class_weight: Any,
    estimator_type: str | None,
    y: Any,
    known: Any = None,
    sample_weight: np.ndarray | None = None,
) -> ClassWeights | None:
    """Return the weights that ``class_weight`` gives to the classes of some samples.

    ``"balanced"`` is ``n / (k * n_c)`` for a class of ``n_c`` out of ``n`` samples and ``k`` classes (King,
    G. and Zeng, L., "Logistic regression in rare events data", Political Analysis 9 (2001), 137-163),
    samples counted by their weights, so that a weight of two is the same as a sample that comes twice.

    There is a dictionary for each column of y, and None where ``class_weight`` is None. ``known`` are the
    classes of the model, one array per column of y where there are several; by default those in y.
    """
    if class_weight is None:
        return None
    if estimator_type != "classifier":
        article = "an" if (estimator_type or "")[:1] in tuple("aeiou") else "a"
        what = f"{article} {estimator_type.replace('_', ' ')}" if estimator_type else "none"
        raise ValueError(f"class_weight is for classifiers, the model is {what}: use sample_weight.")
    if y is None:
        return None  # that it is missing is said where labels are encoded
    columns = _columns(y, one=isinstance(known, np.ndarray))
    classes = known if isinstance(known, list) else [known]
    if len(classes) != len(columns):
        classes = [None] * len(columns)
    specs = _for_columns(class_weight, len(columns))
    if any(isinstance(spec, str) for spec in specs):
        one = isinstance(known, np.ndarray)
        labels, sample_weight = sums_of_labels(y, sample_weight, one)
        columns = _columns(labels, one)
    return [
        _balanced(column, sample_weight)
        if isinstance(own, str)
        else _given(own, np.unique(column) if named is None else named)
        for own, column, named in zip(specs, columns, classes, strict=True)
    ]


def weights_with_classes(
    tables: ClassWeights | None, y: Any, sample_weight: np.ndarray | None
) -> np.ndarray | None:
    """Return the weights of samples, times those of their classes; None where there are neither.

    Classes without a weight have one; the weights of all columns of y are multiplied.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.estimators.class_weights import weights_with_classes
    >>> weights_with_classes([{"a": 3.0}], ["a", "b", "a"], np.array([1.0, 1.0, 0.5])).tolist()
    [3.0, 1.0, 1.5]
    """
    if tables is None or y is None:
        return sample_weight
    weights = times_class_weights(tables, y, sample_weight)
    if not weights.max() > 0:
        raise ValueError(
            "No row has a weight above 0: class_weight, or its product with sample_weight, is zero for all."
        )
    return weights


def times_class_weights(tables: ClassWeights, y: Any, sample_weight: np.ndarray | None) -> np.ndarray:
    """Return the weights of samples, times those of their classes; all may be zero."""
    columns = _columns(y, one=len(tables) == 1)
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
    """Return the sum of the weights of samples, times those of their classes."""
    labels, sums = sums_of_labels(y, sample_weight, one=len(tables) == 1)
    return math.fsum(times_class_weights(tables, labels, sums).tolist())


def objective_weights(
    problem: Problem,
    y: Any,
    sample_weight: np.ndarray | None,
    n_samples: int,
    scale: tuple[float, float] | None = None,
) -> np.ndarray | None:
    """Return the weights of samples as the objective of a problem takes them.

    Their mean is one, None stands for no weights. Those of a graph with its own loss are as they were given,
    ones by default: only the graph knows whether their sum matters. ``scale`` is what weights are divided by,
    a power of two and then the mean of all weights, where these are those of some samples.
    """
    tables, weights = problem.targets.class_weights, sample_weight
    if tables is not None and y is not None:
        weights = (weights_with_classes if scale is None else times_class_weights)(tables, y, sample_weight)
    if problem.trainable.head is None:
        own = problem.trainable.own_loss
        if own is not None and own.row_weight is not None:
            weights = np.ones(n_samples) if weights is None else weights
        elif weights is not None:
            raise ConversionError(
                "The graph computes its own loss without weights of rows: name the input that takes them in "
                "weight_name, or add one, as add_loss_output(model, weight_name='sample_weight') does."
            )
    elif weights is not None:
        weights = _for_positions(problem, weights, y)
        # Only their ratios count, and float32 holds no extreme ones.
        unit, mean = _scale(problem, y, sample_weight, n_samples) if scale is None else scale
        weights = weights / unit / mean
    return None if weights is None else weights.astype(problem.dtype)


def _scale(problem: Problem, y: Any, sample_weight: np.ndarray | None, n_samples: int) -> tuple[float, float]:
    """Return a power of two to divide weights by, and the mean of what is left of them."""
    if sample_weight is None:
        return 1.0, problem.total_weight(y, None) / n_samples
    unit = scale_of(float(sample_weight.max()))
    return unit, problem.total_weight(y, sample_weight / unit) / n_samples


def _for_positions(problem: Problem, weights: np.ndarray, y: Any) -> np.ndarray:
    """Return weights as the objective takes them: of shape (n, positions) for a loss of each position."""
    positions = None if problem.trainable.head is None else problem.trainable.head.positions
    if positions is not None and positions.apart:
        return per_position(weights, np.shape(y))
    if weights.ndim > 1:
        raise ValueError(
            f"sample_weight must be 1D, and has the shape {weights.shape}: a weight for each label is for "
            "ONNX files whose y has several labels for a sample, from the first call on."
        )
    return weights


def _columns(y: Any, one: bool = False) -> list[np.ndarray]:
    """Return the columns of y; a single one where all its dimensions have the same classes."""
    values = y.toarray() if issparse(y) else np.asarray(y)
    return [values.ravel()] if one or values.ndim < 2 or values.shape[1] == 1 else list(values.T)


def _for_columns(spec: Any, count: int) -> list[Any]:
    """Return what is said of each column of y."""
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
    """Return the weights of a dictionary, checked."""
    for name, weight in weights.items():
        if not isinstance(weight, Real) or not np.isfinite(weight) or weight < 0:
            raise ValueError(f"The class_weight of {name!r} must be a number >= 0, not {weight!r}.")
    values = np.asarray(classes).tolist()
    unknown = [name for name in weights if name not in values]
    missing = [value for value in values if value not in weights]
    if unknown and missing:  # keys that are not there now may be there in another fold
        raise ValueError(
            f"class_weight names {unknown}, which are no classes, and not {missing}, which are: it needs a "
            f"weight for those of {values} only."
        )
    return {name: float(weight) for name, weight in weights.items()}


def _balanced(column: np.ndarray, sample_weight: np.ndarray | None) -> dict[Any, float]:
    """Return weights under which the classes of a column count the same."""
    classes, numbers = np.unique(column, return_inverse=True)
    counts = np.bincount(numbers, sample_weight, minlength=len(classes))
    seen = counts > 0  # rows of weight zero are as good as absent
    shares = np.divide(counts.sum(), seen.sum() * counts, out=np.ones(len(classes)), where=seen)
    return dict(zip(classes.tolist(), shares.tolist(), strict=True))
