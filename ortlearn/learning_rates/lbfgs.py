"""L-BFGS-B of scipy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, minimize

from .solver import BaseSolver, Solution

__all__ = ["LearningRateLBFGS"]

#: A line search that finds nothing better has come as far as it can if the last step gained less
#: than this many rounding errors.
ROUNDING_ERRORS = 100
#: Widths of rounded kinks, one after the other, as shares of the objective.
WIDTHS = (1e-1, 1e-2, 1e-3)


class LearningRateLBFGS(BaseSolver):
    """L-BFGS: quasi-Newton steps on all rows at once, by scipy's L-BFGS-B.

    The kinks of a loss such as ``"absolute_error"`` are rounded, less and less; an l1 penalty is
    refused.

    Parameters
    ----------
    memory : int, default=10
        Steps from which the curvature is estimated.
    gtol : float, default=1e-5
        Stop when no component of the gradient is above this.
    ftol : float, default=1e-12
        Stop when an iteration lowers the objective f by less than ``ftol * max(|f|, 1)``, or by less
        than a rounding error of the graph's type.
    max_line_search : int, default=50
        Most evaluations of an iteration.

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
        """Minimise the objective of all rows, penalty included."""
        bounds = None if objective.lower is None else Bounds(objective.lower)
        if not objective.has_kinks:
            return self._run(objective, weights, max_iter, note, max(self.ftol, precision), bounds)[0]
        left, value = max_iter, objective(weights)[0]
        found = Solution(weights, True, "The objective is zero")
        for share in WIDTHS:
            if left <= 0 or value <= 0:
                break
            rounded, ftol = objective.rounded(share * value), max(self.ftol, precision * min(value, 1.0))
            found, n_iter = self._run(rounded, weights, left, note, ftol, bounds)
            weights, left, value = found.weights, left - n_iter, objective(found.weights)[0]
        return found

    def _run(self, objective, weights, max_iter, note, ftol, bounds):
        """Return what one run finds, and how many iterations it took."""
        values, last = [], [0.0]

        def evaluate(current):
            last[0], slopes = objective(current)
            return last[0], slopes

        def noted(current):  # the weights evaluated last
            values.append(last[0])
            note(current)

        result = minimize(
            evaluate,
            weights,
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
        return Solution(np.asarray(result.x), bool(done), str(result.message)), result.nit


def _is_rounding(values: list[float], precision: float) -> bool:
    """Return whether the last iteration gained no more than a few rounding errors."""
    if len(values) < 2:
        return False
    return values[-2] - values[-1] <= ROUNDING_ERRORS * precision * max(abs(values[-1]), 1.0)
