"""Functions of one vector, for the optimisers of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bridge import one_matrix
from .function import DifferentiableFunction

__all__ = ["ScipyFunction", "to_scipy"]


class ScipyFunction:
    """A scalar function of a vector with its derivatives, made by :func:`to_scipy`.

    ``minimize(objective, x0, jac=True, hessp=objective.hessp)`` minimises it, and
    ``NonlinearConstraint(constraint.value, low, high, jac=constraint.gradient)`` constrains it.

    Parameters
    ----------
    function : DifferentiableFunction
        Function of one numeric matrix.
    output : int or str, default=None
        Column of its output, or its class.
    sign : {1, -1}, default=1
        Factor of the function.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from ortlearn.functions import ScipyFunction, differentiable
    >>> model = KernelRidge(kernel="rbf", alpha=0.01).fit([[0.0], [1.0], [2.0]], [1.0, 0.0, 1.0])
    >>> objective = ScipyFunction(differentiable(model))
    >>> found = minimize(objective, [0.3], jac=True)
    >>> round(float(found.x[0]), 2)
    1.0
    """

    def __init__(self, function: DifferentiableFunction, output: Any = None, sign: int = 1):
        if sign not in (1, -1):
            raise ValueError(f"sign={sign!r} must be 1 or -1.")
        self._bare, self._dtype, self._sign = one_matrix(function), function.dtype, float(sign)
        self._index = function.column_of(output)

    def _sample(self, x: Any) -> np.ndarray:
        return np.ascontiguousarray(np.reshape(x, (1, -1)), dtype=self._dtype)

    def __call__(self, x: Any) -> tuple[float, np.ndarray]:
        """Return the value and the gradient, for ``minimize(..., jac=True)``."""
        value, gradient = self._bare.value_and_gradient(self._sample(x), self._index)
        value = value.ravel()[0 if self._index is None else self._index]
        return self._sign * float(value), self._sign * gradient.ravel().astype(np.float64)

    def value(self, x: Any) -> float:
        """Return the value.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Vector.

        Returns
        -------
        float
            Value.
        """
        value = self._bare(self._sample(x)).ravel()[0 if self._index is None else self._index]
        return self._sign * float(value)

    def gradient(self, x: Any) -> np.ndarray:
        """Return the gradient.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Vector.

        Returns
        -------
        ndarray of shape (n_features,)
            Gradient, float64.
        """
        return self(x)[1]

    def hessp(self, x: Any, v: Any) -> np.ndarray:
        """Return the product of the Hessian and a vector.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Vector.
        v : array-like of shape (n_features,)
            Direction.

        Returns
        -------
        ndarray of shape (n_features,)
            Product, float64.
        """
        samples = self._sample(x)
        u = np.zeros_like(self._bare(samples))
        u.ravel()[0 if self._index is None else self._index] = self._sign
        return self._bare.hessian_vector(samples, self._sample(v), u).ravel().astype(np.float64)


def to_scipy(function: DifferentiableFunction, output: Any = None, sign: int = 1) -> ScipyFunction:
    """Return a function as value, gradient and Hessian products of one sample, for ``scipy.optimize``.

    Parameters
    ----------
    function : DifferentiableFunction
        Function of one numeric matrix.
    output : int or str, default=None
        Column of its output, or its class; required if there are several.
    sign : {1, -1}, default=1
        Factor: -1 maximises.

    Returns
    -------
    ScipyFunction
        Function of a vector of shape (n_features,).

    Raises
    ------
    ValueError
        If X is not one numeric matrix, or the output is unknown.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.functions import differentiable, to_scipy
    >>> objective = to_scipy(differentiable(Ridge(alpha=1e-9).fit([[0.0], [1.0]], [0.0, 2.0])))
    >>> value, gradient = objective([0.5])
    >>> round(value, 6), gradient.round(6).tolist()
    (1.0, [2.0])
    """
    return ScipyFunction(function, output, sign)
