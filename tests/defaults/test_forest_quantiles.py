"""Warm starts of forests with a loss other than their own."""

import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_pinball_loss

from ortlearn import OrtGradientOptimizer
from ortlearn.losses import QuantileLoss


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_quantiles_of_a_forest_are_lower_without_cross_validation():
    X, y = make_friedman1(900, noise=1, random_state=0)
    fitted = RandomForestRegressor(10, random_state=0).fit(X[:200], y[:200])
    test_losses = [mean_pinball_loss(y[400:], fitted.predict(X[400:]), alpha=0.1)]
    for keep_better in (True, False):
        options = {"learning_loss": QuantileLoss(0.1), "keep_better": keep_better, "random_state": 0}
        model = OrtGradientOptimizer(fitted, warm_start=True, **options).fit(X[200:400], y[200:400])
        test_losses.append(mean_pinball_loss(y[400:], model.predict(X[400:]), alpha=0.1))
    before, default, without = test_losses
    assert without < 0.9 * default < 0.9 * before
