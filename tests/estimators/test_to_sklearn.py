"""The scikit-learn model with the trained weights predicts as the trained estimator does."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import WriteBackError


def test_the_learned_weights_are_in_the_attributes(diabetes_units, optimizer):
    X, y = diabetes_units
    trained = optimizer(Ridge(), max_iter=3, random_state=0).fit(X, y)
    model = trained.to_sklearn()
    assert type(model) is Ridge
    assert model.coef_.shape == (10,) and model.coef_.dtype == np.float64
    np.testing.assert_array_equal(model.coef_, trained.trained_coef_["coef"].ravel())
    assert model.intercept_ == trained.trained_coef_["intercept"].item()
    np.testing.assert_allclose(model.predict(X), trained.predict(X), rtol=1e-5, atol=1e-5)


def test_classes_stay_what_they_are(wine):
    X, y = wine
    names = np.array(["red", "rose", "white"])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    trained = OrtGradientOptimizer(model, max_iter=3, random_state=0).fit(X, names)
    written = trained.to_sklearn()
    assert list(written.classes_) == ["red", "rose", "white"]
    np.testing.assert_array_equal(written.predict(X), trained.predict(X))
    np.testing.assert_allclose(written.predict_proba(X), trained.predict_proba(X), atol=1e-6)


def test_the_copy_is_independent(diabetes_units):
    X, y = diabetes_units
    given = LinearRegression().fit(X, y)
    before = given.coef_.copy()
    trained = OrtGradientOptimizer(given, max_iter=2, random_state=0).fit(X, y)
    predicted = trained.predict(X)
    model = trained.to_sklearn()
    model.coef_[:] = 0
    np.testing.assert_array_equal(given.coef_, before)
    np.testing.assert_array_equal(trained.predict(X), predicted)
    assert trained.to_sklearn().coef_.any()


def test_an_onnx_model_is_an_error(diabetes_units):
    X, y = diabetes_units
    exported = OrtGradientOptimizer(Ridge(), max_iter=1).fit(X, y).onnx_
    trained = OrtGradientOptimizer(exported, max_iter=1).fit(X, y)
    with pytest.raises(WriteBackError, match="trained from an ONNX model"):
        trained.to_sklearn()


def test_an_estimator_that_was_fitted_again_is_an_error(diabetes_units):
    X, y = diabetes_units
    given = LinearRegression().fit(X, y)
    trained = OrtGradientOptimizer(given, max_iter=1).fit(X, y)
    given.fit(X, -y)
    with pytest.raises(WriteBackError, match="has been changed since"):
        trained.to_sklearn()
