"""L-BFGS-B of scipy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, minimize

from .solver import BaseSolver, Solution

__all__ = ["LearningRateLBFGS"]

#: A line search that fails has converged if the last step gained less than this many rounding errors.
ROUNDING_ERRORS = 100
#: Widths of smoothed kinks in successive runs, as shares of the objective.
WIDTHS = (1e-1, 1e-2, 1e-3, 1e-4)


class LearningRateLBFGS(BaseSolver):
    """L-BFGS: quasi-Newton steps on all samples at once, by scipy's L-BFGS-B.

    Features are standardised internally, which changes the steps but not the penalty. The kinks of a loss
    such as ``"absolute_error"``, and those of a group lasso, are smoothed with decreasing widths. An l1
    penalty is exact: a weight is the difference of two non-negative parts, and many weights become zero.

    Parameters
    ----------
    memory : int, default=10
        Number of steps from which the curvature is estimated.
    gtol : float, default=1e-5
        Stop when no component of the gradient is above this.
    ftol : float, default=1e-12
        Stop when an iteration lowers the objective f by less than ``ftol * max(|f|, 1)``, or by less
        than a rounding error of the graph's type.
    max_line_search : int, default=50
        Maximum number of evaluations in an iteration.

    References
    ----------
    Zhu, C., Byrd, R. H., Lu, P. and Nocedal, J., "Algorithm 778: L-BFGS-B", ACM Transactions on
    Mathematical Software 23 (1997), 550-560. Chen, X., "Smoothing methods for nonsmooth, nonconvex
    minimization", Mathematical Programming 134 (2012), 71-99.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.learning_rates import LearningRateLBFGS
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtGradientOptimizer(Ridge(), learning_rate=LearningRateLBFGS(gtol=1e-3), random_state=0)
    >>> model.fit(X, y).n_iter_ < 100
    True
    """

    takes_absolute_values = True

    def __init__(self, memory=10, gtol=1e-5, ftol=1e-12, max_line_search=50):
        self.memory = memory
        self.gtol = gtol
        self.ftol = ftol
        self.max_line_search = max_line_search

    def check(self):
        """Check the parameters before training."""
        for name in ("memory", "max_line_search"):
            self.check_count(name)
        for name in ("gtol", "ftol"):
            self.check_number(name, closed=True)

    def minimize(self, objective, weights, max_iter, note, precision):
        """Minimise the objective of all samples, penalty included."""
        signed = _Signed(objective.absolute, objective.anchor, objective.lower)
        if not objective.has_kinks:
            return self._run(objective, weights, max_iter, note, max(self.ftol, precision), signed)[0]
        left, value = max_iter, objective(weights)[0]
        found = Solution(weights, True, "The objective is zero")
        for share in WIDTHS:
            if left <= 0 or value <= 0:
                break
            rounded, ftol = objective.rounded(share * value), max(self.ftol, precision * min(value, 1.0))
            found, n_iter = self._run(rounded, weights, left, note, ftol, signed)
            weights, left, value = found.weights, left - n_iter, objective(found.weights)[0]
        return found

    def _run(self, objective, weights, max_iter, note, ftol, signed):
        """Return the solution of one run, and its number of iterations."""
        values, last, bounds = [], [0.0], signed.bounds(len(weights))

        def evaluate(parts):
            value, slopes = objective(signed.join(parts))
            last[0], slopes = signed.add(value, slopes, parts)
            return last[0], slopes

        def noted(parts):  # the weights evaluated last
            values.append(last[0])
            note(signed.join(parts))

        result = minimize(
            evaluate,
            signed.split(weights),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            callback=noted,
            options={
                "maxiter": max_iter,
                "maxfun": (self.max_line_search + 1) * (max_iter + 1),
                "maxcor": self.memory,
                "gtol": self.gtol,
                "ftol": ftol,
                "maxls": self.max_line_search,
            },
        )
        done = result.success or (result.status == 2 and _is_rounding(values, ftol))
        return Solution(signed.join(result.x), bool(done), str(result.message)), result.nit


class _Signed:
    """Weights that have an absolute value in the objective, as differences of non-negative parts.

    A weight is ``anchor + positive - negative``.
    """

    def __init__(self, factors: np.ndarray | None, anchor: np.ndarray | None, lower: np.ndarray | None):
        self.split_ones = np.zeros(0, dtype=np.int64) if factors is None else np.flatnonzero(factors)
        self.factors = np.zeros(0) if factors is None else factors[self.split_ones]
        self.anchor = np.zeros(0) if anchor is None else anchor[self.split_ones]
        self.lower = lower

    def bounds(self, n_weights: int) -> Bounds | None:
        if self.lower is None and not len(self.split_ones):
            return None
        lower = np.full(n_weights, -np.inf) if self.lower is None else np.array(self.lower)
        upper = np.maximum(self.anchor - lower[self.split_ones], 0.0)  # keeps the weight above its bound
        lower[self.split_ones] = 0.0
        return Bounds(
            np.concatenate([lower, np.zeros(len(self.split_ones))]),
            np.concatenate([np.full(n_weights, np.inf), upper]),
        )

    def split(self, weights: np.ndarray) -> np.ndarray:
        away = weights[self.split_ones] - self.anchor
        parts = np.concatenate([weights, np.maximum(-away, 0.0)])
        parts[self.split_ones] = np.maximum(away, 0.0)
        return parts

    def join(self, parts: np.ndarray) -> np.ndarray:
        n_weights = len(parts) - len(self.split_ones)
        weights = np.array(parts[:n_weights])
        weights[self.split_ones] += self.anchor - parts[n_weights:]
        return weights

    def add(self, value: float, slopes: np.ndarray, parts: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient with respect to the parts, absolute values included."""
        if not len(self.split_ones):
            return value, slopes
        n_weights = len(slopes)
        negative = self.factors - slopes[self.split_ones]
        slopes = np.concatenate([slopes, negative])
        slopes[self.split_ones] += self.factors
        return value + float(self.factors @ (parts[self.split_ones] + parts[n_weights:])), slopes


def _is_rounding(values: list[float], precision: float) -> bool:
    """Return whether the last iteration gained only a few rounding errors."""
    if len(values) < 2:
        return False
    return values[-2] - values[-1] <= ROUNDING_ERRORS * precision * max(abs(values[-1]), 1.0)
