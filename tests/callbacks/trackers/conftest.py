"""Fixtures for callbacks that write to trackers."""

import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from ortlearn import OrtGradientOptimizer


@pytest.fixture
def data():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


@pytest.fixture
def trainer():
    parameters = {"learning_rate": 0.1, "max_iter": 4}
    return OrtGradientOptimizer(LogisticRegression(), early_stopping=True, random_state=0, **parameters)
