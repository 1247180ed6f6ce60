"""Warm starts on few, repeated and equal samples do not ruin a model, and are no errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import GammaRegressor, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from ortlearn import OrtGradientOptimizer

X, y = load_diabetes(return_X_y=True)
pytestmark = pytest.mark.filterwarnings("ignore::ortlearn.exceptions.StartKeptWarning")


@pytest.mark.parametrize("n_samples", [2, 3, 5, 6])
def test_neighbors_are_kept_if_there_are_fewer_samples(n_samples):
    model, new = KNeighborsRegressor().fit(X[:200], y[:200]), slice(200, 200 + n_samples)
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X[new], y[new])
    assert trainer.score(X[300:], y[300:]) > model.score(X[300:], y[300:]) - 0.01


def test_equal_samples_of_all_classes():
    X, y = load_wine(return_X_y=True)
    model = LinearDiscriminantAnalysis().fit(X[::2], y[::2])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    trainer.fit(np.tile(X[1:2], (60, 1)), [0, 1, 2] * 20)
    assert trainer.score(X[1::2], y[1::2]) > model.score(X[1::2], y[1::2]) - 0.02


MODELS = [
    Ridge(),
    GammaRegressor(alpha=1e-3),
    SVR(C=100),
    RandomForestRegressor(10, random_state=0),
]


@pytest.mark.parametrize("n_samples", [1, 3, 8, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", MODELS)
def test_few_samples_of_the_same_kind(model, n_samples):
    scaled = StandardScaler().fit_transform(X)
    for seed in range(2):
        train, new, y_train, y_new = train_test_split(scaled, y, random_state=seed, test_size=0.5)
        fitted = clone(model).fit(train, y_train)
        trainer = OrtGradientOptimizer(fitted, warm_start=True, random_state=0)
        score = trainer.fit(new[:n_samples], y_new[:n_samples]).score(new[30:], y_new[30:])
        assert score > fitted.score(new[30:], y_new[30:]) - 0.02


def test_few_samples_after_a_large_drift_are_learnt():
    model = Ridge().fit(X[:200], y[:200])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X[200:225], y[200:225] + 200)
    assert trainer.score(X[300:], y[300:] + 200) > 0 > model.score(X[300:], y[300:] + 200)


@pytest.mark.parametrize("model", [LogisticRegression(), SVC(), RandomForestClassifier(10, random_state=0)])
@pytest.mark.parametrize("copies", [10, pytest.param(500, marks=pytest.mark.slow)])
def test_copies_of_samples_are_no_evidence(model, copies):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, :10])
    for seed in range(2):
        train, others, y_train, y_others = train_test_split(
            X, y, random_state=seed, stratify=y, test_size=0.65
        )
        fitted, new = clone(model).fit(train, y_train), np.repeat(np.arange(15), copies)
        flipped = np.where(np.arange(15) < 2, 1 - y_others[:15], y_others[:15])
        trainer = OrtGradientOptimizer(fitted, warm_start=True, random_state=0).fit(others[new], flipped[new])
        assert trainer.score(others[15:], y_others[15:]) > fitted.score(others[15:], y_others[15:]) - 0.02


def test_equal_samples_of_few_categories_are_not_copies():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 3)).astype(float)
    y = (rng.random(600) < 1 / (1 + np.exp(-4 * (X[:, 0] - 0.5)))).astype(int)
    model = LogisticRegression().fit(X[:300], y[:300])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(X[300:], 1 - y[300:])
    assert trainer.score(X[300:], 1 - y[300:]) > 0.8


def test_one_sample_that_is_repeated():
    model = Ridge().fit(X[:200], y[:200])
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    trainer.fit(np.repeat(X[200:201], 60, axis=0), np.repeat(y[200:201], 60))
    np.testing.assert_allclose(trainer.predict(X), model.predict(X), rtol=1e-5)


@pytest.mark.parametrize("n_weighted", [1, 2, 6])
def test_few_samples_with_weight(n_weighted):
    model, new = Ridge().fit(X[:200], y[:200]), slice(200, 300)
    weights = np.zeros(100)
    weights[:n_weighted] = 1
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0)
    trainer.fit(X[new], y[new], sample_weight=weights)
    assert trainer.score(X[300:], y[300:]) > model.score(X[300:], y[300:]) - 0.02


def test_copies_of_samples_of_a_frame():
    frame = pd.DataFrame({"x": X[:, 2], "kind": np.where(X[:, 1] > 0, "a", "b")})
    steps = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(steps, LinearRegression()).fit(frame[:200], y[:200])
    new = np.repeat([201, 202, 203], 30)
    trainer = OrtGradientOptimizer(model, warm_start=True, random_state=0).fit(frame.iloc[new], y[new])
    assert trainer.score(frame[300:], y[300:]) > model.score(frame[300:], y[300:]) - 0.02
