"""Steps without conversion, which stay in scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    StandardScaler,
)

from ortlearn.exceptions import ConversionError, FallbackWarning
from tests.curves import Curves
from tests.estimators.mixed_frames import columns, small_step


def test_step_without_conversion(optimizer, numbers):
    X, y = numbers
    spline = make_pipeline(StandardScaler(), Curves(n_knots=4), Ridge(alpha=1e-3))
    model = optimizer(spline, learning_rate=0.3, max_iter=60, random_state=0, batch_size=25)
    with pytest.warns(FallbackWarning, match="Step 'curves' .Curves. stays in scikit-learn"):
        model.fit(X, y, X_val=X[:20], y_val=y[:20])
    assert model.score(X, y) > 0.85 and model.n_features_in_ == 3
    assert model.onnx_.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 18
    back = pickle.loads(pickle.dumps(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        back.partial_fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 3), np.nan))


def test_data_frame(optimizer, people):
    X, y = people[0].fillna({"fare": 0}), people[1]
    steps = make_column_transformer(
        (Curves(), ["fare"]), (OneHotEncoder(handle_unknown="ignore"), ["city", "kind"])
    )
    fitted = make_pipeline(steps, Ridge()).fit(X, y)
    with pytest.warns(FallbackWarning, match="Step 'columntransformer'"):
        model = small_step(optimizer, fitted).fit(X, y)
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        model.predict(X[["kind", "fare", "city"]]), fitted.predict(X), rtol=1e-5, atol=1e-5
    )
    assert {value.name for value in model.onnx_.graph.input} == {"X"}


def test_sparse_output(optimizer, people):
    texts, y = people[0]["note"].tolist(), people[1]
    fitted = make_pipeline(TfidfVectorizer(strip_accents="ascii", ngram_range=(1, 3)), Ridge()).fit(texts, y)
    with pytest.warns(FallbackWarning, match="tfidfvectorizer"):
        model = small_step(optimizer, fitted).fit(texts, y)
    np.testing.assert_allclose(model.predict(texts), fitted.predict(texts), rtol=1e-5)


def test_output_must_be_finite(optimizer, numbers):
    X, y = numbers
    logs = make_pipeline(FunctionTransformer(lambda X: 1 / X), Ridge())
    with pytest.warns(FallbackWarning, match="functiontransformer"):
        trained = optimizer(logs, max_iter=1, random_state=0).fit(np.abs(X) + 1, y)
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="infinity"):
        trained.predict(np.zeros((2, 3)))


def test_last_step_without_definition(optimizer, people):
    X, y = people

    class Mine(Ridge):
        """Subclass that predicts like Ridge, and is trained like Ridge."""

    class Other(Ridge):
        def predict(self, X):
            return 2 * super().predict(X)

    optimizer(make_pipeline(columns(), Mine())).fit(X, y)
    with pytest.raises(ConversionError, match="Other has no model definition"):
        optimizer(make_pipeline(columns(), Other())).fit(X, y)
