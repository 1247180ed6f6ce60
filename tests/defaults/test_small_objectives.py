"""A solver goes on if the objective has fallen far: its tolerances are relative to the objective."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from ortlearn import OrtGradientOptimizer

RNG = np.random.default_rng(1)
YEARS, PRESSURES = RNG.integers(2000, 2021, 300), RNG.normal(1010, 5, 300)
X = np.c_[YEARS, PRESSURES].astype(float)
Y = X @ [0.5, 0.2] + RNG.normal(size=300) * 0.1


@pytest.mark.parametrize("dtype", ["float64", "auto"])
@pytest.mark.parametrize("model", [LinearRegression(fit_intercept=False), Ridge(0.1, fit_intercept=False)])
def test_labels_far_from_zero_without_an_intercept(model, dtype):
    found = OrtGradientOptimizer(model, random_state=0, dtype=dtype).fit(X, Y)
    assert found.score(X, Y) == pytest.approx(clone(model).fit(X, Y).score(X, Y), abs=1e-5)


def test_noise_far_below_the_labels():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 3)) * [1, 10, 100]
    labels = features @ [1.0, 1e-2, 1e-4] + 1e-4 * rng.normal(size=200) + 50
    found = OrtGradientOptimizer(LinearRegression(), random_state=0, dtype="float64").fit(features, labels)
    expected = LinearRegression().fit(features, labels).coef_
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-6)
