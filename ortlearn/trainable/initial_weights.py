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

    Factors of products are uniform in [-b, b] with ``b = sqrt(6 / (fan_in + fan_out))`` (Glorot, X. and
    Bengio, Y., "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010,
    equation 16), intercepts are zero, scales one. Weights with ``Parameter.drawn`` False, such as leaves of
    trees, support vectors and variances, are unchanged.
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
