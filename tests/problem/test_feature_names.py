"""Names and order of columns are checked, as in scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn.exceptions import FallbackWarning

ORDER = "feature names should match(.|\n)*same order"


@pytest.fixture(scope="module")
def frame(cancer):
    X, y = cancer
    return pd.DataFrame(X[:80, :4], columns=list("abcd")), y[:80]


def settings(**others):
    return {"learning_rate": 1e-12, "max_iter": 1, "random_state": 0, **others}


MODELS = {
    "a forest": RandomForestClassifier(3, random_state=0),
    "a pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "a step that is left out": make_pipeline("passthrough", LogisticRegression()),
    "a search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
}


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_fitted_estimator_requires_its_columns(name, warm_start, optimizer, frame):
    X, y = frame
    model = MODELS[name].fit(X, y)
    trained = optimizer(model, **settings(warm_start=warm_start))
    with pytest.raises(ValueError, match=ORDER):
        model.predict(X[list("dcba")])
    with pytest.raises(ValueError, match=ORDER):
        trained.fit(X[list("dcba")], y)
    with pytest.raises(ValueError, match="unseen at fit time:\n- other"):
        trained.partial_fit(X.rename(columns={"a": "other"}), y)
    assert not hasattr(trained, "onnx_")
    assert trained.fit(X, y).fit(X, y).n_features_in_ == 4


def test_warm_start_requires_the_same_columns(optimizer, frame):
    X, y = frame
    goes_on = optimizer(Ridge(), **settings(warm_start=True)).fit(X, y)
    with pytest.raises(ValueError, match=ORDER):
        goes_on.fit(X[list("dcba")], y)
    again = optimizer(Ridge(), **settings()).fit(X, y).fit(X[list("dcba")], y)
    assert list(again.feature_names_in_) == list("dcba")


def select(X):
    return X[["a", "b"]]


BY_NAME = {
    "columns": make_pipeline(make_column_transformer((StandardScaler(), ["a", "c"])), LogisticRegression()),
    "a function": make_pipeline(FunctionTransformer(select), LogisticRegression()),
}


@pytest.mark.filterwarnings(f"ignore::{FallbackWarning.__module__}.FallbackWarning")
@pytest.mark.parametrize("name", BY_NAME)
def test_selection_by_name_accepts_any_order(name, optimizer, frame):
    X, y = frame
    model = BY_NAME[name].fit(X, y)
    other = X[list("dcba")]
    trained = optimizer(model, **settings(warm_start=True)).fit(other, y).fit(other, y)
    np.testing.assert_allclose(trained.predict_proba(other), model.predict_proba(other), atol=1e-6)
