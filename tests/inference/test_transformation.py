"""transform, feature names and output containers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge, SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import OneClassSVM

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import WriteBackError
from ortlearn.learning_rates import LearningRateSGD

UNTOUCHED = {
    "warm_start": True,
    "learning_rate": LearningRateSGD(eta0=1e-30, learning_rate="constant"),
    "max_iter": 1,
}


def linear_members(by_class=True):
    if by_class:
        return [("one", LogisticRegression()), ("two", LinearDiscriminantAnalysis())]
    return [("one", Ridge()), ("two", make_pipeline(StandardScaler(), Ridge(10.0)))]


CLASSIFIERS = {
    "discriminants": LinearDiscriminantAnalysis(),
    "hard vote": VotingClassifier(linear_members()),
    "soft vote": VotingClassifier(linear_members(), voting="soft"),
    "flat vote": VotingClassifier(linear_members(), voting="soft", flatten_transform=True),
    "stack": StackingClassifier(linear_members(), cv=2),
    "pipeline": make_pipeline(StandardScaler(), StackingClassifier(linear_members(), cv=2)),
}
REGRESSORS = {
    "mean": VotingRegressor(linear_members(False)),
    "stack of regressors": StackingRegressor(linear_members(False), passthrough=True, cv=2),
}
MODELS = {**CLASSIFIERS, **REGRESSORS}


def fitted(name, wine, diabetes_units):
    X, y = wine if name in CLASSIFIERS else diabetes_units
    return MODELS[name].fit(X, y), X, y


@pytest.mark.parametrize("name", list(MODELS))
def test_transform_equals_the_model_before_training(name, wine, diabetes_units):
    model, X, y = fitted(name, wine, diabetes_units)
    found = OrtGradientOptimizer(model, **UNTOUCHED).fit(X, y).transform(X)
    np.testing.assert_allclose(found, model.transform(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", list(MODELS))
def test_transform_equals_the_returned_model_after_training(name, wine, diabetes_units):
    model, X, y = fitted(name, wine, diabetes_units)
    ours = OrtGradientOptimizer(model, warm_start=True, max_iter=2, random_state=0).fit(X, y)
    found = ours.transform(X)
    np.testing.assert_array_equal(found, ours.to_sklearn().transform(X))
    if name not in ("discriminants", "hard vote"):  # which have label outputs, or frozen projections
        assert np.abs(found - model.transform(X)).max() > 1e-4


def test_transform_uses_the_trained_weights(diabetes_units):
    X, y = diabetes_units
    ours = OrtGradientOptimizer(REGRESSORS["mean"], max_iter=1, random_state=0).fit(X, y)
    first = ours.transform(X)
    ours.partial_fit(X, y)
    assert np.abs(ours.transform(X) - first).max() > 1e-6
    np.testing.assert_allclose(ours.transform(X).mean(axis=1), ours.predict(X), atol=1e-5)


@pytest.mark.parametrize(
    "model", [Ridge(), RandomForestClassifier(), make_pipeline(PCA(2), Ridge())], ids=str
)
def test_models_without_transform(model):
    ours = OrtGradientOptimizer(model)
    for method in ("transform", "fit_transform", "get_feature_names_out", "set_output"):
        assert not hasattr(ours, method)


def test_error_if_the_model_cannot_be_written(wine):
    X, y = wine
    vote = VotingRegressor([("one", Ridge()), ("two", Ridge(2.0))])
    ours = OrtGradientOptimizer(vote, learning_loss="poisson", learning_rate=1e-9, max_iter=1, random_state=0)
    ours.fit(X, y)
    with pytest.raises(WriteBackError, match="an exponential"):
        ours.transform(X)


NAMED = {
    "pca": PCA(2),
    "kmeans": KMeans(3, n_init=1, random_state=0),
    "columns": make_column_transformer((StandardScaler(), ["a", "b"]), (MinMaxScaler(), ["c"])),
    "pipeline": make_pipeline(StandardScaler(), PCA(2)),
    "discriminants": LinearDiscriminantAnalysis(),
    "soft vote": VotingClassifier(linear_members(), voting="soft"),
    "stack": StackingClassifier(linear_members(), cv=2, passthrough=True),
}


@pytest.fixture
def frame(wine):
    X, y = wine
    return pd.DataFrame(X[:, :3], columns=["a", "b", "c"], index=np.arange(len(X)) + 7), y


def labels_for(model, X, y):
    return (
        y if hasattr(model, "predict_proba") or isinstance(model, KMeans) else np.asarray(model.transform(X))
    )


@pytest.mark.parametrize("name", list(NAMED))
def test_feature_names_and_frames(name, frame):
    X, y = frame
    model = NAMED[name].fit(X, y)
    ours = OrtGradientOptimizer(model, **UNTOUCHED).fit(X, labels_for(model, X, y))
    np.testing.assert_array_equal(ours.get_feature_names_out(), model.get_feature_names_out())
    assert isinstance(ours.transform(X), np.ndarray)
    found = ours.set_output(transform="pandas").transform(X)
    assert list(found.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(found.index, X.index)
    np.testing.assert_allclose(found, model.transform(X), rtol=1e-5, atol=1e-5)


def test_input_feature_names(frame):
    X, _ = frame
    scaler = StandardScaler().fit(X.to_numpy())
    ours = OrtGradientOptimizer(scaler, **UNTOUCHED).fit(X, scaler.transform(X.to_numpy()))
    np.testing.assert_array_equal(ours.get_feature_names_out(), ["a", "b", "c"])
    np.testing.assert_array_equal(ours.get_feature_names_out(["a", "b", "c"]), ["a", "b", "c"])
    with pytest.raises(ValueError, match="input_features"):
        ours.get_feature_names_out(["a", "b"])


def test_container_of_a_pipeline(frame):
    X, y = frame
    target = PCA(2).fit_transform(X)
    steps = make_pipeline(StandardScaler(), OrtGradientOptimizer(PCA(2), max_iter=2, random_state=0))
    found = steps.set_output(transform="polars").fit(X, target).transform(X)
    assert type(found).__module__.startswith("polars") and found.columns == ["pca0", "pca1"]


def test_container_of_the_wrapped_model(frame):
    X, _ = frame
    model = PCA(2).set_output(transform="pandas")
    ours = OrtGradientOptimizer(model, max_iter=1, random_state=0).fit(X, np.ones((len(X), 2)))
    assert list(ours.transform(X).columns) == ["pca0", "pca1"]
    assert isinstance(ours.set_output(transform="default").transform(X), np.ndarray)


def test_transformer_without_feature_names():
    ours = OrtGradientOptimizer(FunctionTransformer())
    assert hasattr(ours, "transform")
    assert not hasattr(ours, "get_feature_names_out") and not hasattr(ours, "set_output")


@pytest.mark.parametrize(
    "model",
    [
        IsolationForest(n_estimators=5, contamination=0.2, random_state=0),
        LocalOutlierFactor(novelty=True),
        OneClassSVM(nu=0.2),
        SGDOneClassSVM(nu=0.2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_outlier_detectors_score_samples(model, wine):
    X, y = wine[0], np.where(wine[1] == 2, -1, 1)
    model.fit(X)
    ours = OrtGradientOptimizer(model, **UNTOUCHED).fit(X, y)
    np.testing.assert_allclose(ours.score_samples(X), model.score_samples(X), rtol=1e-4, atol=1e-4)
    trained = OrtGradientOptimizer(model, warm_start=True, max_iter=2, random_state=0).fit(X, y)
    offset = trained.to_sklearn().offset_
    np.testing.assert_allclose(trained.score_samples(X) - offset, trained.decision_function(X), atol=1e-4)
