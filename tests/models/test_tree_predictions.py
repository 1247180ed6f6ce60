"""Predictions of trees and forests in float32: thresholds, missing values and categories."""

import numpy as np
import pandas as pd
import pytest
from onnx import checker
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ortlearn.graphs import initializer_arrays
from ortlearn.trainable.from_estimator import sklearn_to_onnx

SAMPLES, Y = make_regression(120, 5, n_targets=2, noise=5.0, random_state=0)
SAMPLES = SAMPLES.astype(np.float32)
THREE = make_classification(120, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
TWO = make_classification(120, 5, n_informative=3, n_redundant=0, n_classes=2, random_state=0)
FEW = {"n_estimators": 6, "random_state": 0}

REGRESSORS = [
    DecisionTreeRegressor(max_leaf_nodes=9, random_state=0),
    ExtraTreesRegressor(max_leaf_nodes=9, **FEW),
    GradientBoostingRegressor(**FEW),
    HistGradientBoostingRegressor(max_iter=6),
    BaggingRegressor(max_features=0.6, **FEW),
    AdaBoostRegressor(**FEW),
]
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(max_depth=4, **FEW),
    GradientBoostingClassifier(**FEW),
    GradientBoostingClassifier(loss="exponential", **FEW),
    HistGradientBoostingClassifier(max_iter=6),
    BaggingClassifier(DecisionTreeClassifier(max_depth=3), max_features=0.6, **FEW),
    AdaBoostClassifier(**FEW),
]


def identifier(estimator):
    return repr(estimator).replace(" ", "").replace("\n", "")[:60]


def tables(model):
    """Return the tables of leaf values of a model."""
    return {
        name: array for name, array in initializer_arrays(model).items() if name.startswith("leaf_values")
    }


@pytest.mark.parametrize("estimator", REGRESSORS, ids=identifier)
def test_regressors(run_onnx, estimator):
    fitted = estimator.fit(SAMPLES, Y[:, 0])
    model = sklearn_to_onnx(fitted, SAMPLES.shape[1])
    checker.check_model(model, full_check=True)
    assert tables(model)
    expected = fitted.predict(SAMPLES)
    (found,) = run_onnx(model, SAMPLES)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("data", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=identifier)
def test_classifiers(run_onnx, estimator, data):
    X, y = data[0].astype(np.float32), np.array(["a", "b", "c"])[data[1]]
    if getattr(estimator, "loss", "") == "exponential" and data is THREE:
        y = np.array(["a", "b", "b"])[data[1]]
    fitted = estimator.fit(X, y)
    model = sklearn_to_onnx(fitted, X.shape[1])
    checker.check_model(model, full_check=True)
    label, scores = run_onnx(model, X)
    np.testing.assert_allclose(scores, fitted.predict_proba(X), rtol=1e-4, atol=1e-5)
    assert label.tolist() == fitted.predict(X).tolist()


@pytest.mark.parametrize("max_features", [1.0, 0.6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_isolation_forest(run_onnx, max_features, dtype):
    fitted = IsolationForest(max_features=max_features, contamination=0.2, **FEW).fit(SAMPLES)
    model = sklearn_to_onnx(fitted, SAMPLES.shape[1], dtype)
    checker.check_model(model, full_check=True)
    label, scores = run_onnx(model, SAMPLES.astype(dtype))
    assert scores.dtype == dtype
    np.testing.assert_allclose(scores.ravel(), fitted.decision_function(SAMPLES), atol=1e-6)
    assert label.ravel().tolist() == fitted.predict(SAMPLES).tolist()
    (table,) = tables(model).values()
    assert table.shape == (sum(tree.tree_.n_leaves for tree in fitted.estimators_),)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(max_depth=4, random_state=0),
        ExtraTreesClassifier(max_depth=4, **FEW),
    ],
    ids=identifier,
)
@pytest.mark.parametrize("texts", [False, True])
def test_classifiers_of_several_outputs(run_onnx, estimator, texts):
    X = THREE[0].astype(np.float32)
    y = np.stack([THREE[1], (X[:, 0] > 0) + 1], axis=1)
    y = y.astype(str) if texts else y
    fitted = estimator.fit(X, y)
    label, *scores = run_onnx(sklearn_to_onnx(fitted, X.shape[1]), X)
    for found, expected in zip(scores, fitted.predict_proba(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert label.tolist() == fitted.predict(X).tolist()


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeRegressor(max_depth=4, random_state=0),
        RandomForestRegressor(max_depth=4, **FEW),
        HistGradientBoostingRegressor(max_iter=6),
    ],
    ids=identifier,
)
def test_missing_values_reach_the_leaves_of_scikit_learn(run_onnx, estimator):
    X = np.where(np.random.default_rng(0).uniform(size=SAMPLES.shape) < 0.2, np.float32(np.nan), SAMPLES)
    fitted = estimator.fit(X, Y[:, 0])
    (found,) = run_onnx(sklearn_to_onnx(fitted, X.shape[1]), X)
    np.testing.assert_allclose(found.ravel(), fitted.predict(X), rtol=1e-4, atol=1e-2)


def test_thresholds_that_float32_cannot_hold(run_onnx):
    X = np.float32(1) + np.arange(40, dtype=np.float32)[:, None] * np.finfo(np.float32).eps
    y = (np.arange(40) // 4 % 3)[:, None] == [[0, 1]]
    fitted = DecisionTreeClassifier(random_state=0).fit(X, y.astype(int))
    label = run_onnx(sklearn_to_onnx(fitted, 1), X)[0]
    assert label.tolist() == fitted.predict(X).tolist()


CATEGORIES = np.array([10.0, -3.0, 2.5, 7.0, 100.0])


def with_categories(missing):
    """Return samples with two columns of categories, and a target that depends on them."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=(200, 2))
    X = np.column_stack([rng.normal(size=200), CATEGORIES[codes[:, 0]], rng.normal(size=200), codes[:, 1]])
    y = np.array([3.0, -2.0, 5.0, 0.0])[codes[:, 0]] + (codes[:, 1] % 2) * X[:, 0]
    if missing:
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return X.astype(np.float32), y


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_splits_on_categories(run_onnx, missing, dtype):
    X, y = with_categories(missing)
    fitted = HistGradientBoostingRegressor(max_iter=8, categorical_features=[1, 3]).fit(X, y)
    assert any(predictor.nodes["is_categorical"].any() for (predictor,) in fitted._predictors)
    # Unknown categories are treated as missing values.
    samples = np.concatenate([X, X])
    samples[200:, 1], samples[200:300, 3] = CATEGORIES[4], 17
    (found,) = run_onnx(sklearn_to_onnx(fitted, 4, dtype), samples.astype(dtype))
    np.testing.assert_allclose(found.ravel(), fitted.predict(samples), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_splits_on_more_categories_than_a_word_has_bits(run_onnx, dtype):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 250, size=600), rng.normal(size=600)]).astype(np.float32)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    fitted = HistGradientBoostingRegressor(max_iter=8, categorical_features=[0], min_samples_leaf=3).fit(X, y)
    unseen = np.array([-1.0, -300.0, 251.0, 254.0, 255.0, 1000.0, np.nan])
    samples = np.concatenate([X, np.column_stack([unseen, np.zeros(7)])]).astype(np.float32)
    (found,) = run_onnx(sklearn_to_onnx(fitted, 2, dtype), samples.astype(dtype))
    np.testing.assert_allclose(found.ravel(), fitted.predict(samples), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("selected", [["kind", "word"], "from_dtype", [True, True, False]])
def test_splits_on_categories_of_a_frame(check_graph, selected):
    rng = np.random.default_rng(0)
    words = np.array([f"word {number}" for number in range(40)])[rng.integers(0, 40, size=300)]
    frame = pd.DataFrame(
        {"kind": rng.choice(["b", "a", "c"], 300), "word": words, "age": rng.normal(size=300)}
    )
    frame = frame.astype({"kind": "category", "word": "category"})
    frame.loc[::9, "kind"] = None
    y = np.array([word[-1] for word in words]).astype(float) + (frame["kind"] == "a") * frame["age"]
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=selected, min_samples_leaf=3)
    other = frame.iloc[:9].copy()
    other["kind"] = pd.Categorical(["a", "unseen", None] * 3)
    check_graph(model.fit(frame, y), frame, other)


def test_classes_by_splits_on_categories(run_onnx):
    X, y = with_categories(missing=True)
    labels = np.digitize(y, [-1.0, 2.0])
    fitted = HistGradientBoostingClassifier(max_iter=4, categorical_features=[1, 3]).fit(X, labels)
    label, scores = run_onnx(sklearn_to_onnx(fitted, 4), X)
    np.testing.assert_allclose(scores, fitted.predict_proba(X), rtol=1e-4, atol=1e-5)
    assert label.tolist() == fitted.predict(X).tolist()


def test_a_classifier_of_one_class(run_onnx):
    fitted = DecisionTreeClassifier().fit(SAMPLES, np.full(len(SAMPLES), 3))
    label, scores = run_onnx(sklearn_to_onnx(fitted, SAMPLES.shape[1]), SAMPLES)
    assert set(label.ravel().tolist()) == {3} and set(scores.ravel().tolist()) == {1.0}
