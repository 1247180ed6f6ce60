"""Default fits from fresh weights are as good as scikit-learn's, also where parts depend on each other."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer

DIABETES = load_diabetes(return_X_y=True)
X, y = load_breast_cancer(return_X_y=True)
CANCER = StandardScaler().fit_transform(X[:, :6]), y
REGRESSOR = GradientBoostingRegressor(n_estimators=10, init=LinearRegression(), random_state=0)


@pytest.mark.parametrize(
    ("model", "samples"),
    [
        (REGRESSOR, DIABETES),
        (clone(REGRESSOR).set_params(loss="huber"), DIABETES),
        (TransformedTargetRegressor(clone(REGRESSOR)), DIABETES),
        (GradientBoostingClassifier(n_estimators=10, init=LogisticRegression(), random_state=0), CANCER),
    ],
    ids=["squared", "huber", "transformed", "classifier"],
)
def test_boosting_keeps_the_fitted_model_that_its_trees_correct(model, samples):
    X, y = samples
    own, fitted = clone(model).fit(X[:300], y[:300]), OrtGradientOptimizer(model, random_state=0)
    fitted.fit(X[:300], y[:300])
    assert fitted.score(X[300:], y[300:]) > own.score(X[300:], y[300:]) - 0.01
