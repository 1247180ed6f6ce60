"""to_sklearn returns a model that predicts like the trained estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import WriteBackError


def test_attributes_have_the_trained_weights(diabetes_units, optimizer):
    X, y = diabetes_units
    trained = optimizer(Ridge(), max_iter=3, random_state=0).fit(X, y)
    model = trained.to_sklearn()
    assert type(model) is Ridge
    assert model.coef_.shape == (10,) and model.coef_.dtype == np.float64
    np.testing.assert_array_equal(model.coef_, trained.trained_coef_["coef"].ravel())
    assert model.intercept_ == trained.trained_coef_["intercept"].item()
    np.testing.assert_allclose(model.predict(X), trained.predict(X), rtol=1e-5, atol=1e-5)


def test_classes_keep_their_type(wine):
    X, y = wine
    names = np.array(["red", "rose", "white"])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    trained = OrtGradientOptimizer(model, max_iter=3, random_state=0).fit(X, names)
    written = trained.to_sklearn()
    assert list(written.classes_) == ["red", "rose", "white"]
    np.testing.assert_array_equal(written.predict(X), trained.predict(X))
    np.testing.assert_allclose(written.predict_proba(X), trained.predict_proba(X), atol=1e-6)


def test_copy_is_independent(diabetes_units):
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


def test_onnx_model_is_rejected(diabetes_units):
    X, y = diabetes_units
    exported = OrtGradientOptimizer(Ridge(), max_iter=1).fit(X, y).onnx_
    trained = OrtGradientOptimizer(exported, max_iter=1).fit(X, y)
    with pytest.raises(WriteBackError, match="this is an ONNX model"):
        trained.to_sklearn()


def test_refitted_estimator_is_rejected(diabetes_units):
    X, y = diabetes_units
    given = LinearRegression().fit(X, y)
    trained = OrtGradientOptimizer(given, max_iter=1).fit(X, y)
    given.fit(X, -y)
    with pytest.raises(WriteBackError, match="has been changed since"):
        trained.to_sklearn()


def test_unfitted_estimator_is_rejected():
    with pytest.raises(NotFittedError):
        OrtGradientOptimizer(Ridge()).to_sklearn()


def test_model_without_exponential_is_rejected(diabetes_units):
    X, y = diabetes_units
    options = {"learning_loss": "poisson", "learning_rate": 1e-3, "max_iter": 2, "random_state": 0}
    with pytest.raises(WriteBackError, match="Ridge cannot represent an exponential"):
        OrtGradientOptimizer(Ridge(), **options).fit(X, np.exp(y)).to_sklearn()
    trained = OrtGradientOptimizer(PoissonRegressor(), **options).fit(X, np.exp(y))
    np.testing.assert_allclose(trained.to_sklearn().predict(X), trained.predict(X), rtol=1e-5)


def test_float64_is_kept(diabetes_units):
    X, y = diabetes_units
    model = MLPRegressor(hidden_layer_sizes=(4,), random_state=0)
    trained = OrtGradientOptimizer(model, dtype="float64", max_iter=2, random_state=0).fit(X, y)
    written = trained.to_sklearn()
    assert [w.shape for w in written.coefs_] == [(10, 4), (4, 1)]
    np.testing.assert_allclose(written.predict(X), trained.predict(X), rtol=1e-12)


def test_several_outputs(two_outputs):
    X, y = two_outputs
    trained = OrtGradientOptimizer(LinearRegression(), max_iter=2, random_state=0).fit(X, y)
    written = trained.to_sklearn()
    assert written.coef_.shape == (2, 10) and written.intercept_.shape == (2,)
    np.testing.assert_allclose(written.predict(X), trained.predict(X), rtol=1e-4, atol=1e-5)


def test_selected_weights(wine):
    X, y = wine
    model = make_pipeline(StandardScaler(), PCA(3, random_state=0), LogisticRegression()).fit(X, y)
    trained = OrtGradientOptimizer(
        model, weights_to_train=["pca.components_", "standardscaler.scale_"], warm_start=True, max_iter=2
    ).fit(X, y)
    written = trained.to_sklearn()
    for name, attribute in (("pca", "components_"), ("standardscaler", "scale_")):
        assert np.abs(getattr(written[name], attribute) - getattr(model[name], attribute)).max() > 1e-4
    for name, attribute in (("pca", "mean_"), ("standardscaler", "mean_"), ("logisticregression", "coef_")):
        np.testing.assert_array_equal(getattr(written[name], attribute), getattr(model[name], attribute))
    np.testing.assert_allclose(written.predict_proba(X), trained.predict_proba(X), atol=1e-5)


def test_search_in_a_pipeline_on_a_frame(diabetes_units):
    X, y = diabetes_units
    kind = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    frame = pd.DataFrame({"age": X[:, 1], "size": X[:, 2], "kind": kind})
    columns = make_column_transformer((OneHotEncoder(), ["kind"]), (StandardScaler(), ["age", "size"]))
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2)
    model = TransformedTargetRegressor(make_pipeline(columns, search), transformer=StandardScaler())
    trained = OrtGradientOptimizer(model, max_iter=2, random_state=0).fit(frame, 100 * y + 50)
    written = trained.to_sklearn()
    assert list(written.feature_names_in_) == ["age", "size", "kind"]
    assert written.regressor_[-1].best_estimator_.coef_.any()
    np.testing.assert_allclose(written.predict(frame), trained.predict(frame), rtol=1e-5)


def test_after_pickling_and_partial_fit(diabetes_units):
    X, y = diabetes_units
    trained = OrtGradientOptimizer(Ridge(), max_iter=1, random_state=0, average=True).fit(X, y)
    for _ in range(2):
        again = pickle.loads(pickle.dumps(trained))
        np.testing.assert_array_equal(again.to_sklearn().coef_, trained.trained_coef_["coef"].ravel())
        np.testing.assert_allclose(trained.to_sklearn().predict(X), trained.predict(X), rtol=1e-4, atol=1e-5)
        trained.partial_fit(X, y)


def test_returned_model_can_be_trained(wine):
    X, y = wine
    options = {"max_iter": 2, "shuffle": False, "random_state": 0}
    first = OrtGradientOptimizer(LogisticRegression(), **options).fit(X, y)
    second = OrtGradientOptimizer(first.to_sklearn(), warm_start=True, **options).fit(X, y)
    first.set_params(warm_start=True).fit(X, y)  # continues from the trained weights
    np.testing.assert_allclose(second.predict_proba(X), first.predict_proba(X), atol=1e-6)
