"""Validate y, and encode it as labels of the loss."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils.multiclass import check_classification_targets

from ..graphs import TensorType, value_types
from ..losses import BaseLoss
from ..losses.interval import check_domain
from ..preprocessing.initial_fit import untouched
from .label_arrays import check_shape_of_labels, dense_labels, indices_of
from .label_errors import check_scores_of_file, other_classes

if TYPE_CHECKING:
    from ..models import Scores
    from ..trainable.conversion import TrainableModel

__all__ = ["TargetEncoder", "check_labels", "check_numbers", "single_class"]

#: Number of labels that are encoded at once, so that copies fit in the processor cache.
BLOCK = 2**13


@dataclass(frozen=True)
class TargetEncoder:
    """Encoder of y as labels of a loss."""

    trainable: TrainableModel
    loss: BaseLoss | None
    classes: Any

    @property
    def scores(self) -> Scores | None:
        """Scores of the model; None for a graph with its own loss."""
        return self.trainable.scores

    @property
    def own_type(self) -> TensorType:
        """Type of the label input of a graph with its own loss."""
        assert self.trainable.own_loss is not None
        return value_types(self.trainable.model)[self.trainable.own_loss.label]

    def label_type(self) -> TensorType:
        """Return the type and shape of the labels."""
        if self.scores is None:
            return self.own_type
        if self._uses_class_indices():
            outputs = (len(self.scores.groups),) if self.scores.groups else self.scores.shape[1:-1]
            return TensorType(TensorProto.INT64, (None, *outputs))
        shape = self.scores.shape[:2] if self.scores.n_outputs == 1 else self.scores.shape
        return TensorType(helper.np_dtype_to_tensor_dtype(self.scores.dtype), shape)

    def _uses_class_indices(self) -> bool:
        """Return whether labels are int64 class indices."""
        scores, loss = self.scores, self.loss
        return bool(
            scores and loss and loss.integer_labels and scores.link == "softmax" and scores.n_outputs > 1
        )

    def encode(self, y: Any, n_samples: int) -> np.ndarray:
        """Return the labels of a graph; y is ignored if the objective does not depend on labels.

        Labels are floats of shape (n_samples, n_outputs), or int64 class indices of shape (n_samples,), or
        (n_samples, n_outputs) for several outputs. Classes of positions have the shape
        (n_samples, n_positions) or (n_samples, n_positions, n_classes).
        """
        if self.scores is not None and self.scores.task == "unsupervised":
            return np.zeros((n_samples, self.scores.n_outputs), dtype=self.scores.dtype)
        if y is None:
            raise ValueError(
                f"Training {self.trainable.origin or 'this model'} requires y to be passed, but the target y "
                f"is None. {self._expected()}"
            )
        if self.scores is None:
            return self._encode_for_own_loss(y)
        return ENCODERS[self.scores.task](self, y)

    def encode_known(self, y: Any, n_samples: int) -> np.ndarray:
        """Encode labels whose type was validated before, together with other labels."""
        plain = isinstance(y, np.ndarray) and y.ndim == 1
        if not plain or self.scores is None or self.scores.task != "classification" or self.classes is None:
            return self.encode(y, n_samples)
        return self._encode_indices(_class_indices(y, self.classes, self.trainable))

    def _expected(self) -> str:
        """Return a sentence about the expected y, for models that scikit-learn fits without y."""
        if self.scores is not None and self.scores.transformed is not None:
            return f"It must have the {self.scores.n_outputs} columns that transform returns."
        if self.scores is not None and self.classes is not None:
            classes = np.asarray(self.classes, dtype=object).tolist()
            return f"It must have one of the classes {classes} per sample."
        return "It must have a value for each sample."

    def _encode_values(self, y: Any) -> np.ndarray:
        """Encode the labels of a regressor."""
        assert self.scores is not None
        if self.trainable.from_file:
            check_scores_of_file(y, self.scores)
        if self.scores.positions is not None:
            return self._encode_elements(y)
        transformers = self.scores.target_transformers
        y = _numeric(y, self.scores.dtype if not transformers else np.dtype(np.float64))
        values = y.reshape(-1, 1) if y.ndim == 1 else y
        for transformer in transformers:
            (given,) = untouched(transformer, values)
            values = np.asarray(transformer.transform(given)).reshape(len(values), -1)
        if values.shape[1] != self.scores.n_outputs:
            file = self.trainable.exported
            others = file is not None and len(file.graph.output) > 1
            hint = " Set output_name to train another output of the file." if others else ""
            raise ValueError(f"y has {values.shape[1]} outputs, the model has {self.scores.n_outputs}.{hint}")
        self._check_domain(values)
        return np.ascontiguousarray(values, dtype=self.scores.dtype)

    def _encode_elements(self, y: Any) -> np.ndarray:
        """Encode the labels of a regressor with outputs of several dimensions."""
        assert self.scores is not None and self.scores.positions is not None
        check_shape_of_labels(y, self.scores.positions)
        values = _numeric(y, self.scores.dtype, allow_nd=True)
        values = values.reshape(len(values), -1)
        self._check_domain(values)
        return values

    def _check_domain(self, values: np.ndarray) -> None:
        """Raise an error if labels are not in the domain of the loss."""
        if self.loss is not None:
            check_domain(self.loss, values)

    def _encode_classes(self, y: Any) -> np.ndarray:
        """Encode one column of classes, or classes of positions."""
        assert self.classes is not None and self.scores is not None
        if self.scores.positions is not None:
            check_shape_of_labels(y, self.scores.positions)
            values = np.asarray(y).reshape(len(y), -1)
            return self._encode_indices(_class_indices(values, self.classes, self.trainable))
        check_classification_targets(y)
        values = column_or_1d(y, warn=True)
        if len(self.classes) < 2:
            raise ValueError("A classifier needs samples of at least 2 classes, y has 1 class.")
        return self._encode_indices(_class_indices(values, self.classes, self.trainable))

    def _encode_indices(self, indices: np.ndarray) -> np.ndarray:
        """Encode class indices for the loss: unchanged, as one column, or one-hot."""
        assert self.scores is not None
        if self._uses_class_indices():
            return indices
        if self.scores.n_outputs == 1:
            return indices.reshape(len(indices), -1).astype(self.scores.dtype)
        return np.eye(self.scores.n_outputs, dtype=self.scores.dtype)[indices]

    def class_indices(self, labels: np.ndarray) -> np.ndarray | None:
        """Return the class indices of encoded labels; None unless y is a single column of classes."""
        if self.scores is None or self.scores.task != "classification" or self.classes is None:
            return None
        if self.scores.positions is not None:
            return None
        if labels.ndim == 1 or labels.shape[1] == 1:
            return labels.ravel().astype(np.int64)
        return labels.argmax(axis=1)

    def _encode_labels(self, y: Any) -> np.ndarray:
        """Encode several columns of classes."""
        assert self.scores is not None
        values = dense_labels(y)
        groups = self.scores.groups
        if values.ndim != 2 or values.shape[1] != len(groups):
            raise ValueError(f"y has shape {values.shape}, the model has {len(groups)} columns of classes.")
        classes = self.classes if isinstance(self.classes, list) else [np.array([0, 1])] * len(groups)
        pairs = zip(values.T, classes, strict=True)
        indices = np.stack([_class_indices(column, known, self.trainable) for column, known in pairs], axis=1)
        if self._uses_class_indices():
            return indices
        if max(groups) == 1:
            return indices.astype(self.scores.dtype)
        columns = [
            np.eye(max(count, 2), dtype=self.scores.dtype)[column][:, -count:]
            for column, count in zip(indices.T, groups, strict=True)
        ]
        return np.hstack(columns)

    def _encode_for_own_loss(self, y: Any) -> np.ndarray:
        """Convert y to the label input of a graph with its own loss."""
        known = self.own_type
        dtype = helper.tensor_dtype_to_np_dtype(known.elem_type)
        values = _numeric(y, dtype, allow_nd=True)
        rank = 1 if known.shape is None else len(known.shape)
        if rank == 2 and values.ndim == 1:
            values = values.reshape(-1, 1)
        elif rank == 1 and values.ndim == 2:
            values = column_or_1d(values, warn=True)
        return np.ascontiguousarray(values)


ENCODERS: dict[str, Callable[[TargetEncoder, Any], np.ndarray]] = {
    "classification": TargetEncoder._encode_classes,
    "multilabel": TargetEncoder._encode_labels,
    "regression": TargetEncoder._encode_values,
}


def check_labels(y: Any, name: str = "y") -> None:
    """Raise an error if a label is None, NaN, infinite, pandas' NA or bytes."""
    if y is None or issparse(y):
        return
    try:
        values = np.asarray(y)
    except ValueError:  # rows of different lengths, for which encoding raises an error
        return
    first = values.flat[0] if values.dtype == object and values.size else None
    if values.dtype.kind == "S" or isinstance(first, bytes):
        raise ValueError(f"{name} has bytes: convert them to texts, such as by numpy.strings.decode({name}).")
    if values.dtype != object:
        assert_all_finite(values, input_name=name)
        return
    with suppress(TypeError):  # labels that are not hashable are tested one by one
        if not any(map(_is_missing, {*values.ravel().tolist()})):
            return
    missing = np.argwhere(np.frompyfunc(_is_missing, 1, 1)(values).astype(bool))
    if len(missing):
        raise ValueError(f"{name} has no label for sample {missing[0][0]}: {values[tuple(missing[0])]!r}.")


def check_numbers(y: Any) -> None:
    """Raise an error if labels of a regressor are texts other than numbers."""
    values = None if issparse(y) else np.asarray(y)
    if values is None or values.dtype.kind not in "OUT":
        return
    try:
        values.astype(np.float64)
    except (TypeError, ValueError) as error:
        message = "y must contain numbers for a regressor: convert texts to numbers, or train a classifier."
        raise ValueError(message) from error


def _is_missing(value: Any) -> bool:
    return value is None or is_scalar_nan(value) or is_pandas_na(value)


def single_class(y: Any) -> Any:
    """Return the class of all samples if y is one column with a single class, and None otherwise."""
    if issparse(y) or np.ndim(y) not in (1, 2) or np.shape(y)[1:] not in ((), (1,)):
        return None
    values = np.asarray(y).ravel()
    if not len(values) or not np.all(values == values[0]):
        return None
    return values[:1].tolist()[0]


def _class_indices(values: np.ndarray, classes: np.ndarray, trainable: TrainableModel) -> np.ndarray:
    """Return the index of the class of each label."""
    indices, labels = np.empty(np.shape(values), dtype=np.int64), np.asarray(classes)
    try:
        for start in range(0, len(values), BLOCK):
            block = slice(start, start + BLOCK)
            indices[block] = indices_of(values[block], labels)
        known = bool((indices >= 0).all())
    except TypeError:  # labels and classes of types that cannot be compared
        known = False
    if not known:
        raise other_classes(np.setdiff1d(values, classes), classes, trainable.from_file, trainable.origin)
    return indices


def _numeric(y: Any, dtype: np.dtype, allow_nd: bool = False) -> np.ndarray:
    check_numbers(y)
    with np.errstate(over="ignore"):
        return check_array(y, ensure_2d=False, allow_nd=allow_nd, dtype=dtype, input_name="y", order="C")
