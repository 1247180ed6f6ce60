"""Changes of weights between two models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..graphs import initializer_arrays
from ..onnx_files.loading import is_onnx_source, load_onnx
from ..preprocessing.estimator_checks import check_trains_one_model, is_trainer
from ..trainable.conversion import to_trainable

__all__ = ["WeightChange", "WeightChanges", "weight_changes"]


@dataclass(frozen=True)
class WeightChange:
    """Change of a weight.

    Attributes
    ----------
    name : str
        Weight.
    norm : float
        Euclidean norm of the difference.
    relative : float
        The norm divided by that of the weight before; infinite if that is zero.
    largest : float
        Largest absolute difference of an element.
    index : tuple of int
        Its place.
    """

    name: str
    norm: float
    relative: float
    largest: float
    index: tuple[int, ...]


class WeightChanges(list):
    """List of :class:`WeightChange`, with a frame of the same.

    Parameters
    ----------
    iterable : iterable of WeightChange, default=()
        Changes.
    """

    def __init__(self, iterable: Iterable[WeightChange] = ()) -> None:
        super().__init__(iterable)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per weight, and the attributes of changes as columns.

        Returns
        -------
        pandas.DataFrame
            Changes in their order.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        from sklearn.utils._optional_dependencies import check_pandas_support

        names = [field.name for field in fields(WeightChange)]
        frame = check_pandas_support("WeightChanges.to_frame").DataFrame
        return frame([[getattr(change, name) for name in names] for change in self], columns=names)


def weight_changes(before: Any, after: Any, X: Any = None) -> WeightChanges:
    """Return the changes of the weights that two models have in common, the largest relative one first.

    Parameters
    ----------
    before, after : estimator, onnx.ModelProto, bytes or path
        Models of the same structure: fitted scikit-learn estimators, estimators of ortlearn, or ONNX files.
        One that was trained by ortlearn and the scikit-learn estimator that it was trained from have the
        same names.
    X : array-like or frame, default=None
        Some samples, for scikit-learn estimators whose columns have several types.

    Returns
    -------
    WeightChanges
        List of changes; weights of other shapes or names are left out. Its method ``to_frame`` returns a
        pandas DataFrame.

    Raises
    ------
    ValueError
        If the models have no weight in common.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.inspection import weight_changes
    >>> before = Ridge(alpha=0.0).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> after = Ridge(alpha=0.0).fit([[0.0], [1.0]], [0.0, 3.0])
    >>> [(change.name, round(change.norm, 3)) for change in weight_changes(before, after)][:1]
    [('coef', 2.0)]
    >>> weight_changes(before, after).to_frame()[["name", "norm", "largest"]].round(3).values.tolist()[:1]
    [['coef', 2.0, 2.0]]
    """
    first, second = _weights(before, X), _weights(after, X)
    names = [name for name in first if name in second and first[name].shape == second[name].shape]
    if not names:
        raise ValueError(
            f"The models have no weight in common: {sorted(first)[:5]} and {sorted(second)[:5]}."
        )
    changes = [_change(name, first[name], second[name]) for name in names]
    return WeightChanges(sorted(changes, key=lambda change: (-change.relative, change.name)))


def _weights(model: Any, X: Any) -> Mapping[str, np.ndarray]:
    """Return the weights of a model by name."""
    if is_trainer(model):
        check_trains_one_model(model)
        return model.trained_coef_
    if is_onnx_source(model):
        arrays = initializer_arrays(load_onnx(model))
        return {name: array for name, array in arrays.items() if array.dtype.kind == "f" and array.size}
    trainable = to_trainable(model, X=X)
    return trainable.coefficients(trainable.initial_weights())


def _change(name: str, before: np.ndarray, after: np.ndarray) -> WeightChange:
    old, difference = before.astype(np.float64), after.astype(np.float64) - before
    norm, size = float(np.linalg.norm(difference)), float(np.linalg.norm(old))
    place = np.unravel_index(int(np.abs(difference).argmax()), difference.shape) if difference.size else ()
    relative = norm / size if size else float(np.inf if norm else 0.0)
    largest = float(np.abs(difference).max(initial=0.0))
    return WeightChange(name, norm, relative, largest, tuple(int(axis) for axis in place))
