"""Validation losses of X_val and y_val."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression


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
