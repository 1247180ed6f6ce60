"""For all types and shapes of y, untrained models have the predictions and scores of scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    MultiTaskLasso,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::sklearn.exceptions.DataConversionWarning"
)

RANDOM = np.random.RandomState(0)
X, CLASSES = load_iris(return_X_y=True)
X, CLASSES = StandardScaler().fit_transform(X[::2]), CLASSES[::2]
TWO = (CLASSES > 0).astype(int)
NAMES = np.array(["x", "yy", "zzz"])[CLASSES]
VALUES = X @ RANDOM.normal(size=(4, 3)) + RANDOM.normal(size=(len(X), 3))
LABELS = np.stack([CLASSES > 0, CLASSES == 1, RANDOM.uniform(size=len(X)) > 0.5], axis=1).astype(int)
OUTPUTS = np.stack([CLASSES, TWO], axis=1)


def network(kind, **options):
    return kind(hidden_layer_sizes=(4,), max_iter=20, random_state=0, **options)


def forest(kind):
    return kind(3, max_depth=3, random_state=0)


MODELS = {
    "linear": LinearRegression(),
    "ridge": Ridge(),
    "network": network(MLPRegressor),
    "tree": DecisionTreeRegressor(max_depth=2, random_state=0),
    "forest": forest(RandomForestRegressor),
    "extra": forest(ExtraTreesRegressor),
    "each": MultiOutputRegressor(make_pipeline(StandardScaler(), Ridge())),
    "chain": RegressorChain(Ridge()),
    "tasks": MultiTaskLasso(0.01),
    "logistic": LogisticRegression(),
    "sgd": SGDClassifier(loss="log_loss", random_state=0),
    "bayes": GaussianNB(),
    "perceptron": Perceptron(random_state=0),
    "decisions": RidgeClassifier(),
    "vectors": SVC(),
    "boosted": AdaBoostClassifier(n_estimators=2, random_state=0),
    "class network": network(MLPClassifier),
    "class tree": DecisionTreeClassifier(max_depth=2, random_state=0),
    "class forest": forest(RandomForestClassifier),
    "rest": OneVsRestClassifier(LogisticRegression()),
    "rest of decisions": OneVsRestClassifier(LinearSVC()),
    "each logistic": MultiOutputClassifier(LogisticRegression()),
    "each sgd": MultiOutputClassifier(SGDClassifier(loss="log_loss", random_state=0)),
    "each decision": MultiOutputClassifier(LinearSVC()),
    "each pipeline": MultiOutputClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
    "each network": MultiOutputClassifier(network(MLPClassifier)),
    "chain of pipelines": ClassifierChain(make_pipeline(StandardScaler(), LogisticRegression())),
}
Y = {
    "vector": VALUES[:, 0],
    "matrix": VALUES,
    "list": VALUES[:, 0].tolist(),
    "lists": VALUES.tolist(),
    "series": pd.Series(VALUES[:, 0], name="target"),
    "frame": pd.DataFrame(VALUES, columns=list("abc")),
    "polars": pl.Series("target", VALUES[:, 0]),
    "polars frame": pl.DataFrame(VALUES, schema=["a", "b", "c"]),
    "whole": (VALUES[:, 0] * 10).astype(int),
    "float32": VALUES.astype(np.float32),
    "boolean": VALUES[:, 0] > 0,
    "objects": VALUES[:, 0].astype(object),
    "classes": CLASSES,
    "column": CLASSES.reshape(-1, 1),
    "names": NAMES,
    "two names": np.array(["yes", "no"])[TWO],
    "true and false": TWO.astype(bool),
    "minus one": TWO * 2 - 1,
    "floats": CLASSES.astype(float),
    "uint8": CLASSES.astype(np.uint8),
    "uint64 of two": TWO.astype(np.uint64) + 5,
    "int8": CLASSES.astype(np.int8) * 50,
    "class list": NAMES.tolist(),
    "categorical": pd.Series(NAMES).astype("category"),
    "text of pandas": pd.Series(NAMES).astype("string"),
    "Int64": pd.Series(CLASSES).astype("Int64"),
    "polars names": pl.Series("target", NAMES.tolist()),
    "labels": LABELS,
    "bool labels": LABELS.astype(bool),
    "float labels": LABELS.astype(float),
    "uint8 labels": LABELS.astype(np.uint8),
    "label lists": LABELS.tolist(),
    "label frame": pd.DataFrame(LABELS, columns=list("abc")),
    "sparse labels": csr_matrix(LABELS),
    "sparse columns": csc_matrix(LABELS),
    "sparse array": csr_array(LABELS),
    "outputs": OUTPUTS,
    "output frame": pd.DataFrame({"a": OUTPUTS[:, 0], "b": OUTPUTS[:, 1]}),
    "names of outputs": np.stack([NAMES, np.array(["no", "yes"])[TWO]], axis=1),
    "objects of outputs": np.stack([NAMES, np.array(["no", "yes"])[TWO]], axis=1).astype(object),
    "float outputs": OUTPUTS.astype(float) + 1,
}
COMBINATIONS = {
    "linear": "vector, matrix, list, lists, series, frame, polars, polars frame, whole, float32, boolean, "
    "objects",
    "ridge": "vector, frame",
    "network": "series, matrix",
    "tree": "vector, matrix",
    "forest": "frame",
    "extra": "float32",
    "each": "matrix",
    "chain": "matrix",
    "tasks": "frame",
    "logistic": "classes, column, two names, minus one, floats, int8, class list, categorical",
    "class network": "names, true and false, labels, bool labels, label lists, sparse labels, sparse array",
    "class tree": "Int64, outputs, output frame, objects of outputs",
    "class forest": "text of pandas, uint8 labels, names of outputs",
    "sgd": "uint8, uint64 of two",
    "bayes": "polars names, uint8",
    "perceptron": "uint64 of two",
    "boosted": "true and false, uint8",
    "decisions": "floats, label frame, sparse columns",
    "vectors": "names",
    "rest": "uint8, labels, sparse labels",
    "rest of decisions": "two names, sparse labels",
    "each logistic": "labels, uint8 labels, names of outputs, objects of outputs",
    "each sgd": "float labels, outputs, float outputs",
    "each decision": "labels, uint8 labels",
    "each pipeline": "bool labels, names of outputs",
    "each network": "names of outputs",
    "chain of pipelines": "labels, uint8 labels",
}
CASES = [(model, kind) for model, kinds in COMBINATIONS.items() for kind in kinds.split(", ")]


def untrained(source, y, optimizer=OrtGradientOptimizer):
    """Return an estimator trained with a learning rate near zero."""
    model = optimizer(source, warm_start=True, learning_rate=1e-30, max_iter=1, batch_size=100)
    return model.set_params(dtype="float64", random_state=0).fit(X, y)


def dense(values):
    return values.toarray() if issparse(values) else np.asarray(values)


def check_same(ours, theirs, exact):
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs)
        for left, right in zip(ours, theirs, strict=True):
            check_same(left, right, exact)
        return
    assert issparse(ours) == issparse(theirs)
    left, right = dense(ours), dense(theirs)
    assert left.shape == right.shape
    if exact:
        assert left.dtype.kind == right.dtype.kind
        np.testing.assert_array_equal(left, right)
    else:
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.sweep(13)
@pytest.mark.parametrize("model, kind", CASES, ids=[" - ".join(case) for case in CASES])
def test_equal_to_scikit_learn(model, kind):
    y, theirs = Y[kind], clone(MODELS[model]).fit(X, Y[kind])
    ours = untrained(MODELS[model], y)
    has_classes = hasattr(theirs, "classes_")
    assert hasattr(ours, "classes_") == has_classes
    if has_classes:
        check_same(ours.classes_, theirs.classes_, exact=True)
    if model == "chain of pipelines":  # scikit-learn returns floats for all classes
        check_same(ours.predict(X).astype(float), theirs.predict(X), exact=True)
        assert ours.predict(X).dtype == dense(y).dtype
    else:
        check_same(ours.predict(X), theirs.predict(X), exact=has_classes)
    for method in ("predict_proba", "decision_function"):
        if hasattr(theirs, method):
            check_same(getattr(ours, method)(X), getattr(theirs, method)(X), exact=False)
    assert hasattr(ours, "predict_proba") == hasattr(theirs, "predict_proba")
    several = isinstance(theirs.classes_, list) if has_classes else False
    if not several or isinstance(theirs, MultiOutputClassifier):
        comparable = np.asarray(y) if isinstance(y, list) else y  # required by MultiOutputClassifier
        assert ours.score(X, y) == pytest.approx(theirs.score(X, comparable), abs=1e-6)


def test_score_requires_all_outputs():
    """scikit-learn's MultiOutputClassifier raises the same error."""
    ours = untrained(MODELS["class forest"], OUTPUTS)
    right = (ours.predict(X) == OUTPUTS).all(axis=1)
    assert ours.score(X, OUTPUTS) == right.mean()
    weights = RANDOM.uniform(size=len(X))
    assert ours.score(X, OUTPUTS, weights) == pytest.approx(np.average(right, weights=weights))


SCORED = {
    "regression": (Ridge(), VALUES[:, 0]),
    "several numbers": (LinearRegression(), VALUES),
    "classes": (LogisticRegression(), NAMES),
    "labels": (network(MLPClassifier), LABELS),
    "outputs": (MultiOutputClassifier(LogisticRegression()), OUTPUTS),
    "clusters": (KMeans(3, n_init=1, random_state=0), None),
}


@pytest.mark.parametrize("name", SCORED)
def test_weighted_scores(name):
    source, y = SCORED[name]
    weights = np.random.RandomState(1).uniform(0, 3, len(X))
    theirs = clone(source).fit(X, y)
    ours = untrained(theirs, y)
    if name == "outputs":  # scikit-learn's score does not support weights
        expected = np.average((theirs.predict(X) == y).all(axis=1), weights=weights)
    else:
        expected = theirs.score(X, y, weights)
    assert ours.score(X, y, weights) == pytest.approx(expected, rel=1e-6)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-6) != pytest.approx(expected)


def test_single_column_is_not_flattened():
    """y has the shape (n, 1)."""
    for source in ("linear", "ridge", "network", "tree"):
        for y in (VALUES[:, :1], pd.DataFrame({"a": VALUES[:, 0]})):
            assert untrained(MODELS[source], y).predict(X).shape == (len(X), 1)


@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
@pytest.mark.parametrize("kind", ["sparse labels", "float labels", "names of outputs"])
def test_training_on_several_columns(optimizer, kind):
    source = MODELS["class network" if kind == "sparse labels" else "each sgd"]
    model = optimizer(source, max_iter=30, learning_rate=0.1, random_state=0).fit(X, Y[kind])
    assert model.score(X, Y[kind]) > 0.3
    assert np.isfinite(model.losses(X, Y[kind])).all()
    assert model.train_losses_[-1] < model.train_losses_[0]
    again = model.partial_fit(X, Y[kind])
    assert issparse(again.predict(X)) == issparse(Y[kind])


@pytest.mark.filterwarnings("ignore::ortlearn.exceptions.FidelityWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")  # of scikit-learn
@pytest.mark.parametrize("optimizer", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
def test_normalized_sigmoids_of_extreme_samples(optimizer):
    """exp(-score) overflows in float32."""
    source = clone(MODELS["each sgd"]).fit(X * 50, OUTPUTS)
    scores = [member.decision_function(X * 50) for member in source.estimators_]
    assert min(score.min() for score in scores) < -100
    model = optimizer(source, warm_start=True, max_iter=1, random_state=0, learning_rate=1e-30)
    assert np.isfinite(model.fit(X * 50, OUTPUTS).train_losses_).all()
    several = -np.logaddexp(0, -scores[0])
    several -= np.logaddexp.reduce(several, axis=1, keepdims=True)
    two = np.logaddexp(0, np.where(OUTPUTS[:, 1] == 1, -scores[1], scores[1]))
    expected = two - several[np.arange(len(X)), OUTPUTS[:, 0]]
    np.testing.assert_allclose(model.losses(X * 50, OUTPUTS), expected, rtol=1e-4, atol=1e-4)
