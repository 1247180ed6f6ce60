"""The weights of a trained estimator, read and set by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..graphs import initializer_arrays
from ..preprocessing.columns import refuse_masked
from .problem import Problem

__all__ = ["WeightsMixin"]


class WeightsMixin:
    """``get_weights`` and ``set_weights``."""

    trained_coef_: dict[str, np.ndarray]
    _problem: Problem
    _trained: Any
    _fitted_weights: Any

    def get_weights(self):
        """Return the trained weights by name.

        Returns
        -------
        dict of str to ndarray
            Copies of the arrays of ``trained_coef_``.
        """
        check_is_fitted(self)
        return {name: array.copy() for name, array in self.trained_coef_.items()}

    def set_weights(self, weights):
        """Set trained weights.

        Predictions, ``get_trained_onnx`` and ``to_sklearn`` have them at once, ``partial_fit`` and a warm
        start begin with them. What the update remembers of earlier steps (momentum, averages) is forgotten.

        Parameters
        ----------
        weights : mapping of str to array-like
            New values, by the names of ``trained_coef_``. Weights without a new value stay as they are.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object.

        Raises
        ------
        ValueError
            If a name is unknown, or an array has another shape, is not finite, or contradicts a constraint
            of its weight, such as being positive. The object stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from ortlearn import OrtGradientOptimizer
        >>> X = np.linspace(0, 1, 50).reshape(-1, 1)
        >>> trained = OrtGradientOptimizer(LinearRegression(), random_state=0).fit(X, 2 * X.ravel() + 1)
        >>> weights = trained.get_weights()
        >>> trained.set_weights({"coef": np.zeros_like(weights["coef"]), "intercept": [3.0]}).predict([[0.5]])
        array([3.])
        """
        check_is_fitted(self)
        trainable = self._problem.trainable
        stable = {trainable.original_names[name]: name for name in trainable.trained}
        if not isinstance(weights, Mapping) or not weights.keys() <= stable.keys():
            unknown = (
                sorted(map(str, weights.keys() - stable.keys())) if isinstance(weights, Mapping) else weights
            )
            raise ValueError(f"weights must have names among {sorted(stable)}, not {unknown!r}.")
        arrays = initializer_arrays(self._trained, trainable.trained)
        for name, value in weights.items():
            own = stable[name]
            new = _checked(name, value, self.trained_coef_[name])
            constraint = trainable.constraints.get(own)
            if constraint is not None:
                if not constraint.holds(new):
                    raise ValueError(f"Weight {name!r} must be {constraint.text}.")
                new = np.asarray(constraint.free(new), dtype=arrays[own].dtype)
            arrays[own] = new
        self.__dict__.update(self._fitted_weights(self._problem, arrays))
        self._raw_weights: dict[str, np.ndarray] | None = None
        self._states: dict[tuple[str, str], np.ndarray] = {}
        return self


def _checked(name: str, value: Any, known: np.ndarray) -> np.ndarray:
    """Return a new value of a weight as an array of its own, of the weight's type."""
    refuse_masked(value, f"Weight {name!r}")
    with np.errstate(over="ignore"):
        array = np.array(value, dtype=known.dtype)
    if array.shape != known.shape:
        raise ValueError(f"Weight {name!r} has shape {known.shape}, not {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"Weight {name!r} must be finite as {array.dtype}.")
    return array
