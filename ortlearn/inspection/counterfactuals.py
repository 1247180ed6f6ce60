"""The nearest samples with another prediction, and the distance to the nearest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from ..exceptions import GradientError
from ..functions import DifferentiableFunction, differentiable
from .targets import Target, numbers, target_of

__all__ = ["Counterfactuals", "counterfactual"]

#: Margins of the constraint that are tried one after the other, relative to the scale of the output.
MARGINS = (1e-6, 1e-4, 1e-2)
ITERATIONS = 200


@dataclass(frozen=True)
class Counterfactuals:
    """Results of :func:`counterfactual`.

    Attributes
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Nearest samples with the desired prediction, NaN where none was found.
    distance : ndarray of shape (n_samples,)
        Their weighted distances, infinite where none was found.
    found : ndarray of bool of shape (n_samples,)
        Whether one was found.
    tried : list of str
        What was tried for each sample.
    """

    samples: np.ndarray
    distance: np.ndarray
    found: np.ndarray
    tried: list[str] = field(repr=False)


def counterfactual(
    estimator: Any,
    X: Any,
    target: Any,
    *,
    immutable: Sequence[int] = (),
    bounds: Any = None,
    integer: Sequence[int] = (),
    weights: Any = None,
    candidates: Any = None,
    n_starts: int = 5,
    random_state: Any = None,
) -> Counterfactuals:
    """Return the nearest samples for which a model predicts a desired class or value.

    For each sample x, ``sum(w_j (z_j - x_j)^2)`` is minimised under the constraint that the model predicts
    ``target`` at z (Wachter, Mittelstadt and Russell, Harvard Journal of Law and Technology 31, 2018), by
    sequential quadratic programming from several starts. Features are then set back to those of x, one after
    the other, as long as the prediction remains. Every result is checked by ``predict``. It is the nearest
    sample that was found: a nearer one may exist.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier or regressor on a numeric matrix.
    X : array-like of shape (n_samples, n_features)
        Samples.
    target : object or tuple of two floats
        Class of a classifier; for a regressor the interval (low, high) of values.
    immutable : sequence of int, default=()
        Columns that must not change.
    bounds : array-like of shape (n_features, 2), default=None
        Lowest and highest value of each feature; infinite by default.
    integer : sequence of int, default=()
        Columns that must be integers.
    weights : array-like of shape (n_features,), default=None
        Weights of the features in the distance, such as ``1 / X.var(axis=0)``; ones by default.
    candidates : array-like of shape (n_candidates, n_features), default=None
        Further samples to start from, such as training samples. Models without gradient, as ensembles of
        trees, are searched from them alone.
    n_starts : int, default=5
        Number of starts that are drawn around each sample.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Returns
    -------
    Counterfactuals
        Samples, distances, and what was tried.

    Raises
    ------
    ValueError
        If the target is unknown, or a parameter is invalid.
    GradientError
        If the model has no gradient, and no candidates are given.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from ortlearn.inspection import counterfactual
    >>> model = LogisticRegression().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [3.0, 1.0]], [0, 0, 1, 1])
    >>> result = counterfactual(model, [[0.5, 0.5]], target=1, immutable=[1], random_state=0)
    >>> result.samples.round(2).tolist(), model.predict(result.samples).tolist()
    ([[1.5, 0.5]], [1])
    """
    wanted = target_of(estimator, target)
    originals = numbers(X)
    if originals.ndim != 2:
        raise ValueError(f"X must have two dimensions, not {originals.ndim}.")
    space = _Space.of(originals.shape[1], immutable, bounds, integer, weights)
    function: DifferentiableFunction | None = None
    try:
        function = differentiable(estimator, wanted.method)
    except GradientError as error:
        if candidates is None:
            raise GradientError(
                f"{wanted.method} of {type(estimator).__name__} has no gradient: pass candidates=X, "
                "samples such as those of the training, from which the search starts."
            ) from error
    known = numbers(np.empty((0, originals.shape[1])) if candidates is None else candidates)
    known = known[wanted.holds(estimator, known)] if len(known) else known
    random = check_random_state(random_state)
    found = [_Search(estimator, function, wanted, space, x, known, n_starts, random).run() for x in originals]
    samples = np.array([x * np.nan if z is None else z for x, (z, _) in zip(originals, found, strict=True)])
    distance = np.array(
        [np.inf if z is None else space.distance(z, x) for x, (z, _) in zip(originals, found, strict=True)]
    )
    return Counterfactuals(samples, distance, np.isfinite(distance), [text for _, text in found])


@dataclass(frozen=True)
class _Space:
    """Features that may change, their bounds and weights."""

    low: np.ndarray
    high: np.ndarray
    free: np.ndarray
    integer: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, n_features: int, immutable: Any, bounds: Any, integer: Any, weights: Any) -> _Space:
        """Check the parameters."""
        free, whole = np.ones(n_features, dtype=bool), np.zeros(n_features, dtype=bool)
        for name, columns, mask, value in (
            ("immutable", immutable, free, False),
            ("integer", integer, whole, True),
        ):
            if not all(isinstance(c, int | np.integer) and -n_features <= c < n_features for c in columns):
                raise ValueError(f"{name}={columns!r} must be numbers of columns, below {n_features}.")
            mask[list(columns)] = value
        limits = np.array([[-np.inf, np.inf]] * n_features if bounds is None else bounds, dtype=np.float64)
        if limits.shape != (n_features, 2) or not (limits[:, 0] <= limits[:, 1]).all():
            raise ValueError(f"bounds must have the shape ({n_features}, 2), each low <= high.")
        own = np.ones(n_features) if weights is None else np.array(weights, dtype=np.float64)
        if own.shape != (n_features,) or not (np.isfinite(own).all() and (own > 0).all()):
            raise ValueError(f"weights must be {n_features} positive numbers.")
        return cls(limits[:, 0], limits[:, 1], free, whole, own)

    def distance(self, z: np.ndarray, x: np.ndarray) -> float:
        """Return the weighted distance."""
        return float(np.sqrt((self.weights * (z - x) ** 2).sum()))

    def projected(self, z: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the nearest sample within bounds, whose immutable features are those of x."""
        z = np.clip(z, self.low, self.high)
        z = np.where(self.integer, np.clip(np.round(z), np.ceil(self.low), np.floor(self.high)), z)
        return np.where(self.free, z, x)


@dataclass
class _Search:
    """Search of the nearest sample with a prediction."""

    estimator: Any
    function: DifferentiableFunction | None
    wanted: Target
    space: _Space
    x: np.ndarray
    candidates: np.ndarray
    n_starts: int
    random: np.random.RandomState

    def run(self) -> tuple[np.ndarray | None, str]:
        """Return the sample or None, and what was tried."""
        inside = self.space.projected(self.x, self.x)
        if self._holds(inside):
            return inside, "the sample has the prediction already"
        near = [self.space.projected(z, self.x) for z in self._nearest_candidates()]
        results = [z for z in near if self._holds(z)]
        text = f"{len(near)} candidates, of which {len(results)} satisfy the limits"
        if self.function is not None:
            starts, solved = [inside, *self._draws(inside), *near[:3]], 0
            for start in starts:
                z = self._minimised(start)
                solved += z is not None
                results += [] if z is None else [z]
            text += f"; {len(starts)} starts of the optimiser, of which {solved} reached the prediction"
        if not results:
            return None, f"none found: {text}. Widen bounds, release immutable features, or pass candidates."

        def distance(z: np.ndarray) -> float:
            return self.space.distance(z, self.x)

        nearest = sorted(results, key=distance)[:3]
        return min(map(self._reduced, nearest), key=distance), text

    def _holds(self, z: np.ndarray) -> bool:
        return bool(self.wanted.holds(self.estimator, z[None])[0])

    def _nearest_candidates(self) -> np.ndarray:
        distances = (self.space.weights * (self.candidates - self.x) ** 2).sum(axis=1)
        return self.candidates[np.argsort(distances)[:20]]

    def _draws(self, inside: np.ndarray) -> list[np.ndarray]:
        """Return starts drawn around the sample, in the units of the weights."""
        width = 1 / np.sqrt(self.space.weights)
        draws = self.random.standard_normal((self.n_starts, len(inside))) * width
        sizes = 2.0 ** np.arange(self.n_starts)[:, None] / 2
        return [self.space.projected(inside + step, self.x) for step in draws * sizes]

    def _minimised(self, start: np.ndarray) -> np.ndarray | None:
        """Return a sample with the prediction found from a start, or None; integers are rounded at last."""
        fixed = ~self.space.free
        for margin in MARGINS:
            z = self._solved(start, fixed, margin)
            if z is not None and self.space.integer.any():
                z = self._with_integers(z, margin)
            if z is not None and self._holds(self.space.projected(z, self.x)):
                return self.space.projected(z, self.x)
        return None

    def _with_integers(self, z: np.ndarray, margin: float) -> np.ndarray | None:
        """Return a sample with integers, which are fixed one after the other, the others optimised again."""
        fixed = ~self.space.free
        for column in np.flatnonzero(self.space.integer & self.space.free):
            fixed[column] = True
            tried = []
            for value in {np.floor(z[column]), np.ceil(z[column])}:
                if self.space.low[column] <= value <= self.space.high[column]:
                    near = z.copy()
                    near[column] = value
                    found = self._solved(near, fixed, margin)
                    tried += [] if found is None else [found]
            if not tried:
                return None
            z = min(tried, key=lambda own: self.space.distance(own, self.x))
        return z

    def _solved(self, start: np.ndarray, fixed: np.ndarray, margin: float) -> np.ndarray | None:
        """Return the solution of the optimiser with fixed features."""
        assert self.function is not None
        free, point = np.flatnonzero(~fixed), start.copy()
        if not len(free):
            return point if self._holds(point) else None
        bare, weights, origin = self.function.bare, self.space.weights[free], self.x[free]
        dtype = self.function.dtype

        known: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

        def constraints(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if v.tobytes() not in known:  # the optimiser asks for values and Jacobian at the same point
                known.clear()
                point[free] = v
                sample = np.ascontiguousarray(point[None], dtype=dtype)
                values, jacobian = self.wanted.constraints(bare, sample)
                known[v.tobytes()] = values - margin, jacobian[:, free]
            return known[v.tobytes()]

        result = minimize(
            lambda v: float((weights * (v - origin) ** 2).sum()),
            start[free],
            jac=lambda v: 2 * weights * (v - origin),
            method="SLSQP",
            bounds=list(zip(self.space.low[free], self.space.high[free], strict=True)),
            constraints={
                "type": "ineq",
                "fun": lambda v: constraints(v)[0],
                "jac": lambda v: constraints(v)[1],
            },
            options={"maxiter": ITERATIONS, "ftol": 1e-10},
        )
        if not np.isfinite(result.x).all():
            return None
        point[free] = np.clip(result.x, self.space.low[free], self.space.high[free])
        return point.copy()

    def _reduced(self, z: np.ndarray) -> np.ndarray:
        """Return a nearer sample with the prediction: features, and the whole step, are set back."""
        for column in np.argsort(self.space.weights * (z - self.x) ** 2):
            if z[column] != self.x[column]:
                other = z.copy()
                other[column] = self.space.projected(self.x, self.x)[column]
                z = other if self._holds(other) else self._closer(z, column)
        return z

    def _closer(self, z: np.ndarray, column: int) -> np.ndarray:
        """Return a sample whose feature is moved toward that of x by bisection."""
        low, high = 0.0, 1.0
        for _ in range(20):
            middle, other = (low + high) / 2, z.copy()
            other[column] = self.x[column] + middle * (z[column] - self.x[column])
            other = self.space.projected(other, self.x)
            if self._holds(other):
                high, best = middle, other
            else:
                low = middle
        return z if high == 1.0 else best
