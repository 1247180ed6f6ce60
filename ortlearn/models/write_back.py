"""Trained parameters, written into a copy of the estimator they come from."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from .parameters import Parameter
from .registry import find_definition


def write_parameters(
    estimator: Any, parameters: Mapping[str, Parameter], values: Mapping[str, np.ndarray]
) -> Any:
    """Return a copy of an estimator that holds trained parameters.

    Parameters
    ----------
    estimator : estimator
        Fitted; it is not changed.
    parameters : mapping of str to Parameter
        Parameters of its graph.
    values : mapping of str to ndarray
        Trained arrays of the graph, by name; parameters without one keep their values.

    Returns
    -------
    estimator
        Copy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.graphs import TensorType
    >>> from ortlearn.models import write_model, write_parameters
    >>> model = Ridge().fit([[0.0], [1.0]], [1.0, 3.0])
    >>> written = write_model(model, {"X": TensorType(1, (None, 1))})
    >>> write_parameters(model, written.parameters, {"coef": np.array([[2.0]])}).coef_
    array([2.])
    """
    memo: dict[int, Any] = {}
    result = copy.deepcopy(estimator, memo)
    owners: dict[int, Any] = {}
    for name, parameter in parameters.items():  # in the order in which they were declared
        if name not in values:
            continue
        owner = memo.get(id(parameter.owner), result if parameter.owner is estimator else None)
        parameter.write(owner, values[name])
        owners[id(owner)] = owner
    for owner in owners.values():
        definition = find_definition(owner)
        if definition is not None:
            definition.finish(owner)
    return result
