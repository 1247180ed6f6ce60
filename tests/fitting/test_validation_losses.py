"""Validation losses of X_val and y_val."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.quiet import quiet


@pytest.mark.parametrize(
    "every, max_iter, count",
    [(0.1, 20, 10), (0.1, 5, 5), (0.5, 6, 2), (1.0, 6, 1), (1, 4, 4), (3, 10, 3), (20, 10, 0)],
)
def test_validation_every(every, max_iter, count, optimizer, diabetes_units):
    X, y = diabetes_units
    model = optimizer(LinearRegression(), max_iter=max_iter, validation_every=every, random_state=0)
    model.fit(X[:50], y[:50], X_val=X[50:90], y_val=y[50:90])
    assert len(model.validation_losses_) == count


def test_values(optimizer, cancer):
    X, y = cancer
    model = optimizer(
        LogisticRegression(), learning_rate=0.05, learning_penalty="l2", max_iter=3, random_state=0
    )
    model.set_params(validation_every=1).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    np.testing.assert_allclose(model.validation_losses_[-1], model.losses(X[300:], y[300:]).mean(), rtol=1e-5)
    alone = optimizer(
        LogisticRegression(), learning_rate=0.05, learning_penalty="l2", max_iter=3, random_state=0
    ).fit(X[:300], y[:300])
    assert alone.validation_losses_ == []
    for name, array in alone.trained_coef_.items():
        np.testing.assert_array_equal(array, model.trained_coef_[name])  # unchanged


FIXED = {
    "trees": HistGradientBoostingRegressor(max_iter=5, early_stopping=False),
    "frozen scaler": make_pipeline(StandardScaler(), Ridge()),
    "outputs": MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0),
    "classes": MLPClassifier((4,), max_iter=5, random_state=0),
    "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
}


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
@pytest.mark.parametrize("name", FIXED)
def test_validation_equals_predictions_of_the_same_samples(name, layout, optimizer):
    if layout is csr_matrix and name in ("trees", "frozen scaler"):
        layout = np.asfortranarray
    X = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float32)
    y = X @ [1.0, -2.0, 0.5] + 0.1 * X[:, 0] ** 2
    y = np.c_[y, -y] if name == "outputs" else y > 0 if is_classifier(FIXED[name]) else y
    options = {"learning_rate": 0.01, "max_iter": 3, "keep_better": False, "validation_every": 1}
    trained = optimizer(FIXED[name], random_state=0, scoring=None, **options)
    with quiet():  # of networks that scikit-learn fits for few epochs
        trained.fit(layout(X[:60]), y[:60], X_val=layout(X[60:]), y_val=y[60:])
    losses = trained.losses(layout(X[60:]), y[60:]).mean()
    assert trained.validation_losses_[-1] == pytest.approx(losses, rel=1e-5)
    assert trained.validation_scores_[-1] == pytest.approx(trained.score(layout(X[60:]), y[60:]), rel=1e-5)
    assert len(set(trained.validation_losses_)) == 3
