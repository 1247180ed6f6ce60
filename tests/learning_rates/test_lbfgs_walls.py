"""L-BFGS never accepts a higher objective, also if steps of its line search reach NaN."""

import numpy as np
import pytest

from ortlearn.learning_rates import LearningRateLBFGS


class Walls:
    """``slope * |x|`` down to a radius; within it NaN, and further inside a plateau that is higher."""

    absolute = anchor = lower = None
    has_kinks = False

    def __init__(self, slope, inner, outer, height):
        self.slope, self.inner, self.outer, self.height = slope, inner, outer, height

    def __call__(self, x):
        length = float(np.linalg.norm(x))
        if self.inner <= length < self.outer:
            return np.nan, np.full(2, np.nan)
        rise = self.height if length < self.inner else 0.0
        return rise + self.slope * length, self.slope * x / length


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_decreases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        inner, outer = np.sort(rng.uniform(size=2))
        objective = Walls(rng.uniform(0.1, 20), inner, outer, rng.uniform(1, 50))
        start, seen = np.array([1.2, 0.5]) * rng.uniform(1, 3), []
        LearningRateLBFGS().minimize(
            objective, start, 50, lambda weights, seen=seen, f=objective: seen.append(f(weights)[0]), 1e-12
        )
        assert not (np.diff(seen) > 1e-9 * np.abs(seen[1:]).clip(1)).any()  # NaN is an error of trainings
