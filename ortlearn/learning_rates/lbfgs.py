"""L-BFGS-B of scipy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .solver import BaseSolver, Solution

__all__ = ["LearningRateLBFGS"]

#: A line search that finds nothing better has come as far as it can if the last step gained less
#: than this many rounding errors.
ROUNDING_ERRORS = 100


class LearningRateLBFGS(BaseSolver):
    """L-BFGS: quasi-Newton steps on all rows at once, by scipy's L-BFGS-B.

    The objective must be smooth: an l1 penalty is refused. Losses with a kink, such as
    ``"absolute_error"``, often work but without guarantee.

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
    Mathematical Software 23 (1997), 550-560.

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
        values: list[float] = []

        def noted(current):
            values.append(objective(current)[0])
            note(current)

        result = minimize(
            objective,
            weights,
            jac=True,
            method="L-BFGS-B",
            callback=noted,
            options={
                "maxiter": max_iter,
                "maxfun": (self.max_line_search + 1) * (max_iter + 1),
                "maxcor": self.memory,
                "gtol": self.gtol,
                "ftol": max(self.ftol, precision),
                "maxls": self.max_line_search,
            },
        )
        stuck = result.status == 2 and _is_rounding(values, precision)
        return Solution(np.asarray(result.x), bool(result.success or stuck), str(result.message))


def _is_rounding(values: list[float], precision: float) -> bool:
    """Tell whether the last iteration gained no more than a few rounding errors."""
    if len(values) < 2:
        return False
    return values[-2] - values[-1] <= ROUNDING_ERRORS * precision * max(abs(values[-1]), 1.0)
