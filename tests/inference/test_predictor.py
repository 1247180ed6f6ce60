"""Predictors return the results of the methods without validation."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ExecutionError

X = np.random.RandomState(0).normal(size=(60, 4)).astype(np.float32)
Y = X[:, 0] - X[:, 1] * X[:, 2]
TWO = np.where(Y > 0, "high", "low")
THREE = np.digitize(Y, [-0.5, 0.5])
MODELS = [
    (LinearRegression(), Y),
    (LinearRegression(), Y[:, None]),
    (Ridge(), np.stack([Y, X[:, 0]], axis=1)),
    (make_pipeline(StandardScaler(), LogisticRegression()), TWO),
    (LogisticRegression(), THREE),
    (LogisticRegression(), THREE.astype(float)),
    (LogisticRegression(), THREE > 1),
    (LinearSVC(), TWO),
    (RandomForestClassifier(5, random_state=0), THREE),
    (
        VotingClassifier([("tree", DecisionTreeClassifier(max_depth=2)), ("linear", LogisticRegression())]),
        TWO,
    ),
    (MultiOutputClassifier(LogisticRegression()), np.stack([TWO, TWO[::-1]], axis=1)),
    (MultiOutputClassifier(LogisticRegression()), np.stack([THREE, THREE[::-1]], axis=1)),
    (KMeans(3, n_init=1, random_state=0), None),
    (IsolationForest(n_estimators=5, random_state=0), np.where(Y > 0, 1, -1)),
    (PCA(2), X[:, :2]),
]


def fitted(model, y, dtype="float32"):
    return OrtGradientOptimizer(model, max_iter=2, random_state=0, dtype=dtype).fit(X, y)


def assert_same(got, expected):
    if isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
        return
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model, y", MODELS, ids=lambda value: type(value).__name__)
def test_equal_to_the_methods(model, y, dtype):
    trained = fitted(model, y, dtype)
    samples = X.astype(dtype)
    methods = ["predict", "predict_proba", "decision_function", "transform"]
    if isinstance(model, VotingClassifier):
        methods.pop()
        with pytest.raises(ValueError, match="call transform instead"):
            trained.predictor("transform")
    known = [method for method in methods if hasattr(trained, method)]
    assert known
    for method in known:
        found = trained.predictor(method)
        for some in (samples, samples[:1]):
            assert_same(found(some), getattr(trained, method)(some))


def test_weights_of_a_predictor_are_not_updated():
    trained = fitted(LinearRegression(), Y)
    predict, before = trained.predictor(), trained.predict(X)
    trained.set_weights({"intercept": [7.0]})
    np.testing.assert_array_equal(predict(X), before)
    assert abs(trained.predictor()(X) - before).min() > 1


def test_values_are_not_checked():
    samples = X.copy()
    samples[0, 0] = np.nan
    assert np.isnan(fitted(LinearRegression(), Y).predictor()(samples)[0])


@pytest.mark.parametrize(
    "samples, message",
    [(X.astype(np.float64), r"X\.astype\('float32'\)"), (X[:, :3], "Expected: 4"), (X[0], "Expected: 2")],
    ids=["type", "columns", "dimensions"],
)
def test_invalid_arrays_are_an_execution_error(samples, message):
    with pytest.raises(ExecutionError, match=message):
        fitted(LinearRegression(), Y).predictor()(samples)


def test_unknown_methods():
    with pytest.raises(ValueError, match="must be one of 'predict'"):
        fitted(LinearRegression(), Y).predictor("score")
    with pytest.raises(AttributeError, match="predict_proba"):
        fitted(LinearRegression(), Y).predictor("predict_proba")


def test_graphs_with_other_inputs_are_rejected():
    texts = np.array([["a", "b", "c"][i % 3] for i in range(60)], dtype=object)[:, None]
    encoder = ColumnTransformer([("encoder", OneHotEncoder(), [0])])
    trained = OrtGradientOptimizer(make_pipeline(encoder, Ridge()), max_iter=2, random_state=0).fit(texts, Y)
    with pytest.raises(ValueError, match="a matrix of numbers.* Call predict instead"):
        trained.predictor()
