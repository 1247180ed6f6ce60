"""Attributes of a fitted estimator that are in a converted graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from sklearn.base import BaseEstimator
from sklearn.tree._tree import Tree

from ortlearn.graphs import subgraphs

__all__ = ["learned_attributes"]

#: Names of learned attributes without numbers to train: values that categories have, borders of bins.
_NOT_NUMBERS = {"categories_", "classes_", "bin_edges_", "feature_log_prob_count_", "n_iter_"}
#: Values that are in every graph.
_COMMON = {0.0, 0.5, 1.0, 2.0}
_SHARE = 0.6
_DIGITS = 5
_DEPTH = 8
#: Distinct values that a multiple is looked for of, and the factors tried.
_FEWEST, _MOST, _MOST_FACTORS = 5, 30, 2000


def learned_attributes(estimator: Any, model: ModelProto) -> list[str]:
    """Return the paths of the attributes whose values are in a graph.

    A converter may transpose, select, negate, invert, square, or take roots, exponents and logarithms,
    or multiply by one number: an attribute counts where most of its numbers are in the graph up to one
    of these.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    model : onnx.ModelProto
        Its graph, as converted.

    Returns
    -------
    list of str
        Paths such as ``coef_`` or ``estimators_[0].tree_.value``.
    """
    numbers = np.concatenate([np.zeros(1), *(np.ravel(array) for array in _numbers(model.graph))])
    known = np.unique(np.abs(numbers[np.isfinite(numbers)]))
    keys = _keys(known)
    return [
        path
        for path, array in _attributes(estimator)
        if _is_in(array, keys) or _is_multiple(array, known, keys)
    ]


def _numbers(graph: GraphProto) -> Iterator[np.ndarray]:
    """Yield the floating-point numbers of a graph: initializers and attributes."""
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
    for tensor in graph.initializer:
        if tensor.data_type in floats:
            yield numpy_helper.to_array(tensor).astype(np.float64)
    for node in graph.node:
        for attribute in node.attribute:
            value = helper.get_attribute_value(attribute)
            if isinstance(value, TensorProto) and value.data_type in floats:
                yield numpy_helper.to_array(value).astype(np.float64)
            elif isinstance(value, float):
                yield np.array([value])
            elif len(attribute.floats):
                yield np.array(attribute.floats, dtype=np.float64)
        for inner in subgraphs(node):
            yield from _numbers(inner)


def _keys(values: np.ndarray) -> set[str]:
    values = np.abs(values[np.isfinite(values)])
    return {f"{value:.{_DIGITS - 1}e}" for value in np.unique(values) if value not in _COMMON}


def _is_in(array: np.ndarray, known: set[str]) -> bool:
    values = np.abs(np.ravel(array)[np.isfinite(np.ravel(array))])
    values = np.unique(values[~np.isin(values, list(_COMMON))])
    if not len(values):
        return False
    with np.errstate(all="ignore"):
        forms = [
            values,
            1 / values,
            values**2,
            np.sqrt(values),
            np.exp(values),
            np.exp(-values),
            np.log(values),
        ]
        forms.append(1 / np.sqrt(values))
    for form in forms:
        keys = _keys(form)
        if keys and len(keys & known) >= _SHARE * len(keys):
            return True
    return False


def _is_multiple(array: np.ndarray, known: np.ndarray, keys: set[str]) -> bool:
    """Return whether most values, multiplied by a common factor, are in a graph."""
    values = np.unique(np.abs(array[np.isfinite(array)]))
    values = values[values > 0]
    if len(values) < _FEWEST:
        return False
    values = values[:: max(1, len(values) // _MOST)]
    for factor in known[known > 0][:_MOST_FACTORS] / values[-1]:
        found = _keys(values * factor)
        if len(found) >= _FEWEST - 1 and len(found & keys) >= _SHARE * len(found):
            return True
    return False


def _attributes(estimator: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the paths and arrays of the floating-point attributes of a fitted estimator."""
    if depth > _DEPTH:
        return
    for name, value in sorted(getattr(estimator, "__dict__", {}).items()):
        given = isinstance(estimator, BaseEstimator) and name.strip("_") == name
        if name not in _NOT_NUMBERS and (not given or isinstance(value, BaseEstimator | list | tuple)):
            yield from _values(value, f"{path}{name}", depth + 1)


def _values(value: Any, path: str, depth: int) -> Iterator[tuple[str, np.ndarray]]:
    if depth > _DEPTH:
        return
    if isinstance(value, Tree):
        leaves = value.children_left < 0
        shares = value.value[leaves]
        shares = shares[..., 1:] if shares.shape[-1] == 2 else shares  # one of two classes tells of both
        yield f"{path}.value", np.asarray(shares, dtype=np.float64)
        yield f"{path}.n_node_samples", np.asarray(value.n_node_samples[leaves], dtype=np.float64)
    elif isinstance(value, float | np.floating):
        yield path, np.array([float(value)])
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield path, value.astype(np.float64)
    elif isinstance(value, np.ndarray) and value.dtype.names:
        if "value" in value.dtype.names:
            yield f"{path}.value", value["value"][value["is_leaf"] != 0].astype(np.float64)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "O" or isinstance(value, list | tuple):
        for index, item in enumerate(np.ravel(value) if isinstance(value, np.ndarray) else value):
            yield from _values(item, f"{path}[{index}]", depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, f"{path}[{key!r}]", depth + 1)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        yield from _attributes(value, f"{path}.", depth)
