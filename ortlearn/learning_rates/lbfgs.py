"""L-BFGS-B of scipy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from .solver import BaseSolver, Solution

__all__ = ["LearningRateLBFGS"]

#: A failed line search counts as convergence if the last decrease is below this number of rounding errors.
ROUNDING_ERRORS = 100
#: Steps that change the objective by rounding errors, and do not lower it, after which it has converged.
EQUAL_STEPS = 4
#: Decrease of the objective after which a gradient that was small before is not.
FALLEN = 0.1
#: Smallest precision of objectives that are only compared, for which iterations do not go on.
COARSE = 1e-6
#: Message of a failed line search.
NO_STEP = (
    "no step along the search direction lowers the objective, as rounding errors are larger than the "
    "decrease, or the objective is not smooth. Scale features and labels, or train in float64"
)
#: Widths of smoothed kinks in successive runs, relative to the objective.
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
        Stop when no component of the gradient is above this, relative to the objective f. For losses of
        regression, iterations go on with a smaller bound if f has fallen by a factor of ten.
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

    def __init__(
        self, memory: int = 10, gtol: float = 1e-5, ftol: float = 1e-12, max_line_search: int = 50
    ) -> None:
        self.memory = memory
        self.gtol = gtol
        self.ftol = ftol
        self.max_line_search = max_line_search

    def check(self) -> None:
        """Check the parameters before training."""
        for name in ("memory", "max_line_search"):
            self.check_count(name)
        for name in ("gtol", "ftol"):
            self.check_number(name, closed=True)

    def minimize(
        self,
        objective: Any,
        weights: np.ndarray,
        max_iter: int,
        note: Callable[[np.ndarray], None],
        precision: float,
    ) -> Solution:
        """Minimise the objective of all samples, penalty included."""
        may_fall = getattr(objective, "is_of_numbers", False) and precision < COARSE
        run = partial(self._run, note=note, may_fall=may_fall)
        if not objective.has_kinks:
            split = _SplitWeights(objective.absolute, objective.anchor, objective.lower)
            return run(objective, weights, max_iter, ftol=max(self.ftol, precision), split=split)[0]
        remaining, value = max_iter, objective(weights)[0]
        solution = Solution(weights, True, "The objective is zero")
        for width in WIDTHS:
            if remaining <= 0 or value <= 0:
                break
            rounded, ftol = objective.rounded(width * value), max(self.ftol, precision * min(value, 1.0))
            units = getattr(objective, "stretches", lambda *_: 1.0)(weights, width * value)
            split = _SplitWeights(objective.absolute, objective.anchor, objective.lower, units)
            solution, n_iter = run(rounded, weights, remaining, ftol=ftol, split=split)
            weights, remaining, value = solution.weights, remaining - n_iter, objective(solution.weights)[0]
        return solution

    def _run(
        self, objective: Any, weights: Any, max_iter: Any, note: Any, ftol: Any, split: Any, may_fall: bool
    ) -> Any:
        """Return the solution of one run, and its number of iterations."""
        values, last, kept, n_equal = list[float](), [0.0], [weights], [0]
        bounds, unit = split.bounds(len(weights)), [1.0]  # the objective is relative to its first value

        def evaluate(parts: Any) -> Any:
            value, slopes = objective(split.join(parts))
            last[0], slopes = split.add_absolute_values(value, slopes, parts)
            n_equal[0] += bool(values and 0 <= last[0] - values[-1] <= ftol * max(abs(values[-1]), unit[0]))
            if n_equal[0] >= EQUAL_STEPS and _is_rounding(values, ftol, unit[0]):
                raise _NoStepError
            return last[0], slopes

        def callback(parts: Any) -> None:  # parts are those of the last evaluation
            # after values of NaN in a line search, scipy may accept a higher value
            if values and last[0] - values[-1] > ftol * max(abs(values[-1]), unit[0]):
                raise _NoStepError
            values.append(last[0])
            kept[0], n_equal[0] = split.join(parts), 0
            note(kept[0])

        options = {
            "maxiter": max_iter,
            "maxfun": (self.max_line_search + 1) * (max_iter + 1),
            "maxcor": self.memory,
            "gtol": self.gtol,
            "ftol": ftol,
            "maxls": self.max_line_search,
        }
        solve = partial(minimize, jac=True, bounds=bounds, method="L-BFGS-B", callback=callback)
        parts = split.split(weights)
        try:
            while True:
                result = solve(evaluate, parts, options=options)
                has_fallen = may_fall and 0 < result.fun <= FALLEN * unit[0]
                if not (result.success and has_fallen) or len(values) >= max_iter:
                    break
                parts, unit[0] = result.x, float(result.fun)
                tolerances = {"gtol": self.gtol * unit[0], "ftol": ftol * unit[0]}
                options |= {**tolerances, "maxiter": max_iter - len(values)}
        except _NoStepError:
            return Solution(kept[0], True, NO_STEP), len(values)
        failed = result.status == 2
        done = result.success or (failed and (unit[0] < 1 or _is_rounding(values, ftol, unit[0])))
        message = NO_STEP if failed else str(result.message)
        return Solution(split.join(result.x), bool(done), message), len(values)


class _NoStepError(Exception):
    """After a small decrease, further steps change the objective by rounding errors only."""


class _SplitWeights:
    """Weights whose absolute values are in the objective, written as ``anchor + positive - negative``.

    Both parts are non-negative. Parts of a weight have its ``unit``.
    """

    def __init__(
        self,
        factors: np.ndarray | None,
        anchor: np.ndarray | None,
        lower: np.ndarray | None,
        unit: np.ndarray | float = 1.0,
    ) -> None:
        self.unit = unit
        self.indices = np.zeros(0, dtype=np.int64) if factors is None else np.flatnonzero(factors)
        self.factors = np.zeros(0) if factors is None else (factors * unit)[self.indices]
        self.anchor = np.zeros(0) if anchor is None else (anchor / unit)[self.indices]
        self.lower = None if lower is None else lower / unit

    def bounds(self, n_weights: int) -> Bounds | None:
        """Return the bounds of the parts."""
        if self.lower is None and not len(self.indices):
            return None
        lower = np.full(n_weights, -np.inf) if self.lower is None else np.array(self.lower)
        upper = np.maximum(self.anchor - lower[self.indices], 0.0)  # keeps weights above their bounds
        lower[self.indices] = 0.0
        return Bounds(
            np.concatenate([lower, np.zeros(len(self.indices))]),
            np.concatenate([np.full(n_weights, np.inf), upper]),
        )

    def split(self, weights: np.ndarray) -> np.ndarray:
        """Return the parts of weights."""
        weights = weights / self.unit
        away = weights[self.indices] - self.anchor
        parts = np.concatenate([weights, np.maximum(-away, 0.0)])
        parts[self.indices] = np.maximum(away, 0.0)
        return parts

    def join(self, parts: np.ndarray) -> np.ndarray:
        """Return the weights of parts."""
        n_weights = len(parts) - len(self.indices)
        weights = np.array(parts[:n_weights])
        weights[self.indices] += self.anchor - parts[n_weights:]
        return weights * self.unit

    def add_absolute_values(
        self, value: float, slopes: np.ndarray, parts: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return value and gradient with respect to the parts, including absolute values."""
        slopes = slopes * self.unit
        if not len(self.indices):
            return value, slopes
        n_weights = len(slopes)
        negative = self.factors - slopes[self.indices]
        slopes = np.concatenate([slopes, negative])
        slopes[self.indices] += self.factors
        return value + float(self.factors @ (parts[self.indices] + parts[n_weights:])), slopes


def _is_rounding(values: list[float], precision: float, unit: float) -> bool:
    """Return whether the last decrease is only a few rounding errors."""
    if len(values) < 2:
        return False
    return values[-2] - values[-1] <= ROUNDING_ERRORS * precision * max(abs(values[-1]), unit)
