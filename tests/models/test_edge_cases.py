"""Unusual labels and samples: before training, predictions equal those of scikit-learn."""

import numpy as np
import pytest
from sklearn import (
    discriminant_analysis,
    dummy,
    ensemble,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    svm,
    tree,
)
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
#: Values that float32 represents exactly, so that rounding crosses no threshold.
X = RNG.normal(size=(40, 3)).astype(np.float32).astype(np.float64)
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=40)
TWO, THREE = (Y > 0).astype(int), np.digitize(Y, [-1, 1])
SEVERAL = np.column_stack([Y, X[:, 0]])
LABELS = np.column_stack([TWO, X[:, 0] > 0, X[:, 1] > 0.2]).astype(int)
GAPS = X.copy()
GAPS[::5, 0] = np.nan
GAPS[3] = np.nan
METHODS = ("predict", "predict_proba", "decision_function")
STILL = {"learning_rate": 1e-30, "max_iter": 1, "warm_start": True, "keep_better": False}

LOGISTIC = linear_model.LogisticRegression()
CLASSIFIERS = [
    LOGISTIC,
    linear_model.SGDClassifier(random_state=0),
    linear_model.RidgeClassifier(),
    svm.LinearSVC(),
    svm.SVC(),
    tree.DecisionTreeClassifier(max_depth=3),
    ensemble.RandomForestClassifier(3, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=3),
    ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
    ensemble.AdaBoostClassifier(n_estimators=3),
    ensemble.BaggingClassifier(n_estimators=3, random_state=0),
    ensemble.BaggingClassifier(svm.LinearSVC(), n_estimators=3, random_state=0),
    ensemble.VotingClassifier([("a", LOGISTIC), ("b", naive_bayes.GaussianNB())]),
    ensemble.StackingClassifier([("a", LOGISTIC)], cv=2, stack_method="predict"),
    neural_network.MLPClassifier((3,), max_iter=20, random_state=0),
    naive_bayes.GaussianNB(),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    dummy.DummyClassifier(),
    CalibratedClassifierCV(LOGISTIC, method="isotonic", cv=2),
    OneVsRestClassifier(tree.DecisionTreeClassifier(max_depth=2)),
    OneVsOneClassifier(LOGISTIC),
    OutputCodeClassifier(LOGISTIC, random_state=0),
]
REGRESSORS = [
    linear_model.Ridge(),
    linear_model.HuberRegressor(),
    tree.DecisionTreeRegressor(max_depth=3),
    ensemble.RandomForestRegressor(3, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=3),
    ensemble.HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3),
    ensemble.AdaBoostRegressor(n_estimators=3, random_state=0),
    ensemble.BaggingRegressor(n_estimators=3, random_state=0),
    ensemble.VotingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=2))]),
    neural_network.MLPRegressor(hidden_layer_sizes=(3,), max_iter=20, random_state=0),
    dummy.DummyRegressor(),
    PLSRegression(1),
    TransformedTargetRegressor(linear_model.Ridge()),
]
#: Labels of several types.
NAMES = {
    "bools": np.array([False, True])[TWO],
    "negative numbers": np.array([-5, 3])[TWO],
    "texts out of order": np.array(["b", "a", "c"])[THREE],
    "floats": np.array([2.0, -1.0, 7.0])[THREE],
}
#: Unusual samples.
SAMPLES = {
    "a constant column": X * [1, 0, 1] + [0, 2, 0],
    "one column": X[:, :1],
    "duplicates": np.round(X),
}
pytestmark = pytest.mark.filterwarnings("ignore", "error::ortlearn.exceptions.FidelityWarning")


def kind(value):
    """Return a name for a test id."""
    return value if isinstance(value, str) else type(value).__name__


def values_of(model, method, samples):
    """Return the result of a method as one array, with several outputs side by side."""
    found = getattr(model, method)(samples)
    return np.hstack(found) if isinstance(found, list) else np.asarray(found)


TOLERANCES = {"float64": 1e-5, "float32": 1e-3}


def check(model, samples, y, X_test=None, dtypes=tuple(TOLERANCES)):
    """Compare an optimizer of a fitted model with scikit-learn, in both dtypes by default."""
    model = clone(model).fit(samples, y)
    X_test = samples if X_test is None else X_test
    for dtype in dtypes:
        tolerance = TOLERANCES[dtype]
        ours = OrtGradientOptimizer(model, dtype=dtype, **STILL).fit(samples, y)
        for method in METHODS:
            if not hasattr(model, method):
                continue
            expected, found = (values_of(own, method, X_test) for own in (model, ours))
            assert found.shape == expected.shape, method
            if expected.dtype.kind == "f" and method != "predict" or found.dtype.kind == "f":
                scale = max(1.0, np.abs(expected).max())
                np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, err_msg=method)
            else:
                np.testing.assert_array_equal(found, expected)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=kind)
def test_labels_and_samples_of_classifiers(model):
    number = CLASSIFIERS.index(model)  # each model sees all samples, three kinds of labels, both dtypes
    names, samples, types = list(NAMES.values()), list(SAMPLES.values()), list(TOLERANCES)
    for turn in range(3):
        dtype = types[(number + turn) % 2]
        check(model, samples[turn], names[(number + turn) % len(names)], dtypes=[dtype])


@pytest.mark.sweep(7)
@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
def test_samples_of_regressors(model):
    for turn, (name, samples) in enumerate(SAMPLES.items(), REGRESSORS.index(model)):
        y = np.full(40, 3.0) if name == "a constant column" else Y
        check(model, samples, y, samples[:1], dtypes=[list(TOLERANCES)[turn % 2]])


@pytest.mark.sweep(5)
@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeClassifier(max_depth=3),
        ensemble.RandomForestClassifier(3, random_state=0),
        ensemble.HistGradientBoostingClassifier(max_iter=3),
        CalibratedClassifierCV(ensemble.HistGradientBoostingClassifier(max_iter=3), cv=2),
        OneVsRestClassifier(tree.DecisionTreeClassifier(max_depth=2)),
        make_pipeline(StandardScaler(), ensemble.HistGradientBoostingClassifier(max_iter=3)),
        dummy.DummyClassifier(),
    ],
    ids=kind,
)
def test_missing_values(model):
    check(model, GAPS, THREE)


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    "model",
    [
        neural_network.MLPClassifier((3,), max_iter=20, random_state=0),
        tree.DecisionTreeClassifier(max_depth=3),
        ensemble.ExtraTreesClassifier(3, random_state=0),
        linear_model.RidgeClassifier(),
        OneVsRestClassifier(LOGISTIC),
        MultiOutputClassifier(naive_bayes.GaussianNB()),
        dummy.DummyClassifier(strategy="most_frequent"),
        *(
            ClassifierChain(LOGISTIC, order=[2, 0, 1], chain_method=method)
            for method in ("predict", "predict_proba", "predict_log_proba", "decision_function")
        ),
    ],
    ids=kind,
)
def test_several_labels(model):
    check(model, X, LABELS)


@pytest.mark.parametrize(
    "model",
    [
        MultiOutputRegressor(svm.SVR()),
        MultiOutputRegressor(TransformedTargetRegressor(linear_model.Ridge(), transformer=StandardScaler())),
        RegressorChain(tree.DecisionTreeRegressor(max_depth=2), order=[1, 0]),
        tree.DecisionTreeRegressor(max_depth=3),
        ensemble.BaggingRegressor(linear_model.Ridge(), n_estimators=2, max_features=0.7),
        dummy.DummyRegressor(strategy="quantile", quantile=0.3),
    ],
    ids=kind,
)
def test_several_outputs(model):
    check(model, X, SEVERAL)


@pytest.mark.parametrize("strategy", ["none", "all"])
@pytest.mark.parametrize(
    "member",
    [LOGISTIC, svm.LinearSVC(), tree.DecisionTreeClassifier(max_depth=2), linear_model.Ridge()],
    ids=kind,
)
def test_constant_labels(member, strategy):
    constant = np.full((40, 1), int(strategy == "all"))
    check(OneVsRestClassifier(member), X, np.hstack([LABELS, constant]))


@pytest.mark.slow
def test_ties_of_one_against_the_rest():
    check(OneVsRestClassifier(tree.DecisionTreeClassifier(max_depth=1)), np.round(X), THREE)
    check(OneVsRestClassifier(dummy.DummyClassifier()), X, np.repeat([0, 1, 2, 3], 10))


def test_ties_of_code_words():
    # there are more classes than code words
    model = OutputCodeClassifier(LOGISTIC, code_size=0.5, random_state=2).fit(X, np.arange(40) % 5)
    assert len(np.unique(model.code_book_, axis=0)) < 5
    check(OutputCodeClassifier(LOGISTIC, code_size=0.5, random_state=2), X, np.arange(40) % 5)


@pytest.mark.parametrize(
    "y", [np.zeros(40, int), np.full(40, "only"), np.full(40, True)], ids=["0", "text", "bool"]
)
@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeClassifier(),
        ensemble.RandomForestClassifier(3),
        ensemble.BaggingClassifier(n_estimators=2),
        ensemble.AdaBoostClassifier(n_estimators=2),
        ensemble.HistGradientBoostingClassifier(max_iter=2),
        ensemble.VotingClassifier([("a", naive_bayes.GaussianNB())]),
        neural_network.MLPClassifier((3,), max_iter=5),
        naive_bayes.GaussianNB(),
        naive_bayes.ComplementNB(),
        naive_bayes.CategoricalNB(),
        neighbors.KNeighborsClassifier(),
        dummy.DummyClassifier(),
        OneVsRestClassifier(LOGISTIC),
        OutputCodeClassifier(LOGISTIC),
    ],
    ids=kind,
)
def test_one_class(model, y, run_onnx):
    """A model of one class has no trainable weights: compare its graph only."""
    samples = np.abs(X).round()
    model = clone(model).fit(samples, y)
    graph = sklearn_to_onnx(model, dtype=np.float64)
    found = dict(zip([value.name for value in graph.graph.output], run_onnx(graph, samples), strict=True))
    np.testing.assert_array_equal(found["label"].astype(y.dtype), model.predict(samples))
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(samples), atol=1e-12)
