"""Labels as people have them -> labels as a graph takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from ..conversion import Head
from ..graphs import TensorType
from ..losses import BaseLoss

__all__ = ["TargetEncoder"]


@dataclass(frozen=True)
class TargetEncoder:
    """Turn y into the labels of a loss, and check it.

    Attributes
    ----------
    head : Head or None
        What is trained; None for a graph with its own loss.
    loss : BaseLoss or None
        Loss; None for a graph with its own.
    classes : ndarray or None
        Classes of a classifier, sorted.
    own_type : TensorType or None
        Type of the label input of a graph with its own loss.
    """

    head: Head | None
    loss: BaseLoss | None
    classes: np.ndarray | None
    own_type: TensorType | None = None

    def label_type(self) -> TensorType:
        """Return the type of the labels; the first dimension is the rows."""
        if self.head is None:
            assert self.own_type is not None
            return self.own_type
        if self._as_numbers():
            return TensorType(TensorProto.INT64, (None,))
        return TensorType(helper.np_dtype_to_tensor_dtype(self.head.dtype), (None, self.head.n_outputs))

    def _as_numbers(self) -> bool:
        head, loss = self.head, self.loss
        return bool(head and loss and loss.integer_labels and head.link == "softmax" and head.n_outputs > 1)

    def encode(self, y: Any) -> np.ndarray:
        """Return the labels of a graph.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.

        Returns
        -------
        ndarray
            Floats of shape (n_samples, n_outputs), or int64 class numbers of shape (n_samples,).

        Raises
        ------
        ValueError
            If y has missing or infinite values, another number of outputs than the model, or a class
            the model does not know.
        """
        if self.head is None:
            return self._own(y)
        if self.classes is not None:
            return self._encode_classes(y)
        values = _numeric(y, self.head.dtype)
        values = values.reshape(-1, 1) if values.ndim == 1 else values
        if values.shape[1] != self.head.n_outputs:
            raise ValueError(f"y has {values.shape[1]} outputs, the model has {self.head.n_outputs}.")
        return np.ascontiguousarray(values)

    def _encode_classes(self, y: Any) -> np.ndarray:
        assert self.classes is not None and self.head is not None
        check_classification_targets(y)
        values = column_or_1d(y, warn=True)
        if len(self.classes) < 2:
            raise ValueError("A classifier needs samples of at least 2 classes, y has 1 class.")
        unknown = np.setdiff1d(values, self.classes)
        if len(unknown):
            raise ValueError(
                f"y has classes {unknown.tolist()} that the model does not know: "
                f"it has {self.classes.tolist()}."
            )
        numbers = np.searchsorted(self.classes, values).astype(np.int64)
        if self._as_numbers():
            return numbers
        if self.head.n_outputs == 1:
            return numbers.reshape(-1, 1).astype(self.head.dtype)
        return np.eye(self.head.n_outputs, dtype=self.head.dtype)[numbers]

    def _own(self, y: Any) -> np.ndarray:
        assert self.own_type is not None
        dtype = helper.tensor_dtype_to_np_dtype(self.own_type.elem_type)
        values = _numeric(y, dtype)
        rank = 1 if self.own_type.shape is None else len(self.own_type.shape)
        if rank == 2 and values.ndim == 1:
            values = values.reshape(-1, 1)
        elif rank == 1 and values.ndim == 2:
            values = column_or_1d(values, warn=True)
        return np.ascontiguousarray(values)


def _numeric(y: Any, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return check_array(y, ensure_2d=False, dtype=dtype, input_name="y", order="C")
