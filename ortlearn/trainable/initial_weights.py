"""Random initial weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..models.constraints.base import Constraint
from ..models.parameters import Parameter

__all__ = ["draw_weights"]


def draw_weights(
    arrays: Mapping[str, np.ndarray],
    weights: Mapping[str, Parameter],
    random_state: np.random.RandomState,
    constraints: Mapping[str, Constraint] | None = None,
) -> dict[str, np.ndarray]:
    """Initialize weights at random.

    Factors of products are uniform in [-b, b] with ``b = sqrt(6 / (fan_in + fan_out))``, intercepts
    are zero, scales one. Leaves of trees, tables, support vectors, means, variances, and other weights
    with ``Parameter.drawn`` False are unchanged.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Values of the weights, whose shapes and types the result has.
    weights : mapping of str to Parameter
        Roles and fans.
    random_state : numpy.random.RandomState
        Source of randomness.
    constraints : mapping of str to Constraint, default=None
        Constraints by name; the arrays of these weights are free values.

    Returns
    -------
    dict of str to ndarray
        New values.

    References
    ----------
    Glorot, X. and Bengio, Y., "Understanding the difficulty of training deep feedforward neural
    networks", AISTATS 2010, equation 16.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.conversion import draw_weights
    >>> from ortlearn.models import Parameter
    >>> weights = {"w": Parameter("w", "weight", True, (2, 1)), "b": Parameter("b", "intercept", True)}
    >>> drawn = draw_weights({"w": np.ones((2, 1)), "b": np.ones(1)}, weights, np.random.RandomState(0))
    >>> drawn["b"], bool(np.abs(drawn["w"]).max() < np.sqrt(6 / 3))
    (array([0.]), True)
    """
    drawn = {}
    for name in sorted(arrays):
        array, weight = arrays[name], weights[name]
        if not weight.drawn:
            values = array
        elif weight.role == "weight":
            bound = np.sqrt(6.0 / sum(weight.fans))
            values = random_state.uniform(-bound, bound, array.shape)
        else:
            values = np.full(array.shape, 1.0 if weight.role == "scale" else 0.0)
        if weight.drawn and constraints and name in constraints:
            values = constraints[name].free(constraints[name].values(values))
        drawn[name] = values.astype(array.dtype)
    return drawn
