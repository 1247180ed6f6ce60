"""Where a fitted estimator keeps an array: found by its expression, and written to."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import FeatureUnion, Pipeline

from ..weights.attribute_tables import COMBINED
from ..weights.fitted_attributes import FittedArray, known_class
from .combined import WRITERS

__all__ = ["Place", "place_of"]

#: ``.name``, ``[3]`` or ``['name']``: how an expression goes on from an object to a part of it.
_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d+|'[^']*'|\"[^\"]*\")\]")


@dataclass(frozen=True)
class Place:
    """A part of an object that holds numbers.

    Attributes
    ----------
    owner : object
        Estimator, tree, list or dictionary.
    key : str or int
        Attribute, expression, position or key in it.
    """

    owner: Any
    key: str | int

    def write(self, values: np.ndarray) -> None:
        """Replace the numbers; type and shape stay as they are.

        Parameters
        ----------
        values : ndarray
            As many numbers as there were, in their order.
        """
        writer = _writer(self.owner, self.key)
        if writer is not None:
            writer(self.owner, values)
        elif isinstance(self.owner, tuple):
            np.copyto(self.owner[self.key], _like(self.owner[self.key], values))  # type: ignore[index]
        elif _is_attribute(self.owner, self.key):
            setattr(self.owner, str(self.key), _like(getattr(self.owner, str(self.key)), values))
        else:
            self.owner[self.key] = _like(self.owner[self.key], values)


def place_of(array: FittedArray, estimator: Any) -> Place:
    """Return where an estimator of the same structure keeps an array.

    Parameters
    ----------
    array : FittedArray
        Array of a fitted estimator.
    estimator : estimator
        That estimator, or a copy of it.

    Returns
    -------
    Place
        Place.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion.weights.fitted_attributes import fitted_arrays
    >>> from ortlearn.conversion.write_back.places import place_of
    >>> model = Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> place_of(fitted_arrays(model)[0], model).write(np.array([3.0]))
    >>> model.coef_
    array([3.])
    """
    owner = estimator if array.step is None else _part(estimator, array.step)
    path = array.attribute
    for expression, _ in COMBINED.get(array.owner, ()):
        if path.endswith(expression):
            return Place(_follow(owner, _steps(path[: -len(expression)])), expression)
    *way, last = _steps(path)
    return Place(_follow(owner, way), last)


def _steps(path: str) -> list[str | int]:
    return [name or ast.literal_eval(item) for name, item in _STEP.findall(path)]


def _follow(owner: Any, way: list[str | int]) -> Any:
    for key in way:
        owner = _part(owner, key)
    return owner


def _part(owner: Any, key: str | int) -> Any:
    if isinstance(owner, Pipeline) and key in dict(owner.steps):
        return dict(owner.steps)[key]
    if isinstance(owner, FeatureUnion) and key in dict(owner.transformer_list):
        return dict(owner.transformer_list)[key]
    return getattr(owner, str(key)) if _is_attribute(owner, key) else owner[key]


def _is_attribute(owner: Any, key: str | int) -> bool:
    return isinstance(key, str) and not isinstance(owner, dict | np.ndarray)


def _like(old: Any, values: np.ndarray) -> Any:
    """Return numbers as the old ones were kept: in an array, a sparse matrix, a list, or alone."""
    if issparse(old):
        new = old.copy()
        new.data[...] = values.reshape(new.data.shape)
        return new
    if isinstance(old, np.ndarray):
        new = np.empty_like(old)
        new[...] = values.reshape(old.shape)
        return new
    if isinstance(old, list | tuple):
        return type(old)(float(value) for value in values.ravel())
    return type(old)(values.item())


def _write_tree(tree: Any, values: np.ndarray) -> None:
    leaves = tree.children_left < 0
    tree.value[leaves] = values.reshape(tree.value[leaves].shape)


def _write_predictor(nodes: np.ndarray, values: np.ndarray) -> None:
    nodes["value"][nodes["is_leaf"].astype(bool)] = values.ravel()


def _writer(owner: Any, key: str | int) -> Callable[[Any, np.ndarray], None] | None:
    """Return how to write what is no plain attribute or element; None for what is."""
    if key == "value" and type(owner).__name__ == "Tree":
        return _write_tree
    if key == "value" and isinstance(owner, np.ndarray) and owner.dtype.names:
        return _write_predictor
    return WRITERS.get((known_class(owner), str(key)))
