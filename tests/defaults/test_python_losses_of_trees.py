"""Leaves are estimated for a loss in Python as for the same loss in ONNX; boosting warns."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer
from ortlearn.exceptions import ObjectiveWarning
from ortlearn.losses import FunctionLoss, QuantileLoss

X, Y = make_friedman1(900, noise=1.0, random_state=0)
TRAIN, TEST = (X[:500], Y[:500]), (X[500:], Y[500:])


def pinball(expected, predicted):
    """Return the losses of the quantile 0.9, and their gradients."""
    errors = expected - predicted
    return np.maximum(0.9 * errors, -0.1 * errors).ravel(), np.where(errors > 0, -0.9, 0.1)


def fitted(model, loss):
    return OrtGradientForwardBackwardOptimizer(model, learning_loss=loss, random_state=0).fit(*TRAIN)


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")
@pytest.mark.parametrize(
    "model",
    [RandomForestRegressor(20, random_state=0), KNeighborsRegressor()],
    ids=["forest", "neighbours"],
)
def test_quantiles_in_python_and_in_onnx_cover_the_same(model):
    found = fitted(model, FunctionLoss(pinball)).predict(TEST[0])
    expected = fitted(model, QuantileLoss(0.9)).predict(TEST[0])
    assert np.mean(TEST[1] <= found) == pytest.approx(0.9, abs=0.05)
    assert np.mean(TEST[1] <= found) == pytest.approx(np.mean(TEST[1] <= expected), abs=0.03)


def test_boosting_says_that_its_stages_have_another_loss():
    model = GradientBoostingRegressor(n_estimators=5, random_state=0)
    with pytest.warns(ObjectiveWarning, match="Write the loss as an expression"):
        fitted(model, FunctionLoss(pinball))
