"""predict_log_proba, fit_transform and fit_predict exist and return the same as in scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, OneClassSVM

SMALL = {"learning_rate": 1e-12, "max_iter": 1, "random_state": 0, "warm_start": True}


@pytest.mark.parametrize(
    "model", [LogisticRegression(), GaussianMixture(2, random_state=0)], ids=["classes", "mixture"]
)
def test_logarithms_of_probabilities(model, optimizer, wine):
    X, y = wine
    trained = optimizer(model.fit(X, y), **SMALL).fit(X, y)
    logs = trained.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(logs), trained.predict_proba(X), rtol=1e-5, strict=True)
    if hasattr(model, "predict_log_proba"):
        np.testing.assert_allclose(logs, model.predict_log_proba(X), atol=1e-4)


def test_logarithms_of_zero_and_of_several_outputs(optimizer, wine):
    X, y = wine
    sure = optimizer(LogisticRegression().fit(X, y), **SMALL).fit(X, y)
    assert np.isneginf(sure.predict_log_proba(1e4 * X)).any()
    several = optimizer(MultiOutputClassifier(LogisticRegression()), **SMALL).fit(
        X, np.stack([y, y > 0], axis=1)
    )
    for logs, probabilities in zip(several.predict_log_proba(X), several.predict_proba(X), strict=True):
        np.testing.assert_array_equal(np.exp(logs).argmax(axis=1), probabilities.argmax(axis=1))


def test_fit_and_transform(optimizer, wine):
    X, _ = wine
    model = PCA(2).fit(X)
    labels = model.transform(X)
    trained = optimizer(model, **SMALL)
    np.testing.assert_array_equal(
        trained.fit_transform(X, labels), clone(trained).fit(X, labels).transform(X), strict=True
    )
    distances = optimizer(make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0)), **SMALL)
    assert distances.fit_transform(X, sample_weight=np.ones(len(X))).shape == (len(X), 3)


@pytest.mark.parametrize("model", [KMeans(3, n_init=1, random_state=0), GaussianMixture(2, random_state=0)])
def test_fit_and_predict(model, optimizer, wine):
    X, _ = wine
    trained = optimizer(model, **SMALL)
    np.testing.assert_array_equal(trained.fit_predict(X), trained.predict(X))
    np.testing.assert_array_equal(trained.predict(X), clone(model).fit_predict(X))


def test_fit_predict_of_outlier_detectors(optimizer, wine):
    X, y = wine
    inside = np.where(y == 0, 1, -1)
    assert set(optimizer(OneClassSVM(), **SMALL).fit_predict(X, inside)) <= {-1, 1}


@pytest.mark.parametrize(
    "model, missing",
    [
        (Ridge(), {"predict_log_proba", "fit_transform", "fit_predict"}),
        (LinearSVC(), {"predict_log_proba", "fit_transform", "fit_predict"}),
        (LogisticRegression(), {"fit_transform", "fit_predict"}),
        (PCA(), {"predict_log_proba", "fit_predict"}),
        (KMeans(), {"predict_log_proba"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_missing_methods(model, missing, optimizer):
    trainer = optimizer(model)
    for name in ("predict_log_proba", "fit_transform", "fit_predict"):
        assert hasattr(trainer, name) == (name not in missing), name


def test_score_of_a_subclass_with_another_predict(optimizer, wine):
    class Constant(optimizer):
        """Subclass that predicts the first class."""

        def predict(self, X):
            return np.repeat(self.classes_[:1], len(X))

    X, y = wine
    trained = Constant(LogisticRegression(), max_iter=1, random_state=0).fit(X, y)
    assert trained.score(X, y) == np.mean(y == trained.classes_[0])
