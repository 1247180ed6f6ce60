"""Converted models have scikit-learn's predictions, and standard operators at pinned versions."""

import numpy as np
import pytest
from onnx import checker
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from ortlearn.exceptions import ConversionError
from ortlearn.graphs import extract_model, opset_versions
from ortlearn.onnx_files.versions import OPSET
from ortlearn.preprocessing.initial_fit import fit_clone, is_fitted
from ortlearn.runtime.readable_versions import FLOOR_IR
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx

FUSED = {"LinearClassifier", "LinearRegressor", "Scaler"}
REGRESSORS = {
    "ridge": Ridge(),
    "ridge without intercept": Ridge(fit_intercept=False),
    "linear": LinearRegression(),
    "mlp": MLPRegressor(hidden_layer_sizes=(8, 4), activation="tanh", max_iter=30, random_state=0),
    "scaled without intercept": make_pipeline(StandardScaler(), LinearRegression(fit_intercept=False)),
    "scaled mlp": make_pipeline(
        StandardScaler(),
        PCA(5),
        MLPRegressor(hidden_layer_sizes=(8,), max_iter=30, random_state=0, solver="lbfgs"),
    ),
}
CLASSIFIERS = {
    "logistic": LogisticRegression(max_iter=500),
    "sgd": SGDClassifier(random_state=0),
    "sgd log": SGDClassifier(loss="log_loss", random_state=0),
    "svc": LinearSVC(),
    "ridge": RidgeClassifier(),
    "mlp": MLPClassifier((8,), max_iter=30, random_state=0),
    "scaled": make_pipeline(
        MinMaxScaler(), StandardScaler(), PCA(5), MLPClassifier((8,), max_iter=30, random_state=0)
    ),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def check_versions(model):
    checker.check_model(model, full_check=True)
    assert opset_versions(model)[""] == OPSET
    assert len({i.domain for i in model.opset_import}) == len(model.opset_import)
    assert model.ir_version <= FLOOR_IR
    assert not FUSED & {node.op_type for node in model.graph.node}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(diabetes, run_onnx, name, n_targets, dtype):
    y = diabetes.y_train
    if n_targets > 1:
        y = np.column_stack([y, -2 * y, y**2])
    estimator = fit_clone(REGRESSORS[name], diabetes.X_train, y)
    model = sklearn_to_onnx(estimator, 10, dtype)
    check_versions(model)
    (got,) = run_onnx(model, diabetes.X_test.astype(dtype))
    assert got.dtype == dtype and got.shape == (len(diabetes.X_test), n_targets)
    expected = estimator.predict(diabetes.X_test.astype(dtype)).reshape(got.shape)
    np.testing.assert_allclose(got, expected, atol=1e-4, rtol=1e-4)
    # the trained output is the prediction
    scores = to_trainable(estimator, dtype=dtype).scores
    assert (scores.task, scores.link) == ("regression", "identity")
    assert (scores.n_outputs, scores.dtype) == (n_targets, dtype)


def labels_of(kind, split):
    y = split.y_train
    if kind == "binary":
        return (y == 1).astype(np.int64)
    return np.array(["barolo", "grignolino", "barbera"])[y] if kind == "strings" else y * 2 - 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["binary", "multi-class", "strings"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(wine, run_onnx, name, kind, dtype):
    scale = StandardScaler().fit(wine.X_train)
    X_train, X_test = (scale.transform(X).astype(np.float32) for X in (wine.X_train, wine.X_test))
    estimator = fit_clone(CLASSIFIERS[name], X_train, labels_of(kind, wine))
    model = sklearn_to_onnx(estimator, 13, dtype)
    check_versions(model)
    X = X_test.astype(dtype)
    label, scores = run_onnx(model, X)
    assert label.tolist() == estimator.predict(X).tolist()
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(scores, estimator.predict_proba(X), atol=1e-4)
    else:
        expected = estimator.decision_function(X)
        np.testing.assert_allclose(scores[:, -1] if expected.ndim == 1 else scores, expected, atol=1e-4)
    check_raw_scores(estimator, dtype, run_onnx, X)


def check_raw_scores(estimator, dtype, run_onnx, X):
    """The trained output is the score before the link, with one column for two classes."""
    trainable = to_trainable(estimator, dtype=dtype)
    scores, n_classes = trainable.scores, len(estimator.classes_)
    assert (scores.task, scores.n_outputs) == ("classification", 1 if n_classes == 2 else n_classes)
    assert scores.dtype == dtype
    assert scores.classes.tolist() == estimator.classes_.tolist()
    (raw,) = run_onnx(extract_model(trainable.model, [scores.score]), X)
    if hasattr(estimator, "decision_function"):
        expected = estimator.decision_function(X).reshape(raw.shape)
        np.testing.assert_allclose(raw, expected, atol=1e-3, rtol=1e-3)
    else:
        proba = estimator.predict_proba(X)
        if scores.link == "softmax":
            assert n_classes > 2
            ours = np.exp(raw - raw.max(axis=1, keepdims=True))
            np.testing.assert_allclose(ours / ours.sum(axis=1, keepdims=True), proba, atol=1e-4)
        else:
            assert n_classes == 2
            np.testing.assert_allclose(1 / (1 + np.exp(-raw[:, 0])), proba[:, 1], atol=1e-4)


def test_float64_is_not_rounded(diabetes, run_onnx):
    estimator = Ridge().fit(diabetes.X_train.astype(np.float64), diabetes.y_train)
    X = diabetes.X_test.astype(np.float64)
    (got,) = run_onnx(sklearn_to_onnx(estimator, 10, np.float64), X)
    np.testing.assert_allclose(got.ravel(), estimator.predict(X), rtol=1e-12, atol=1e-13)


def test_probabilities_of_two_classes_in_float64(breast_cancer, run_onnx):
    estimator = LogisticRegression().fit(breast_cancer.X_train.astype(np.float64), breast_cancer.y_train)
    X = breast_cancer.X_test.astype(np.float64)
    trainable = to_trainable(estimator, dtype=np.float64)
    shapes = [array.shape for array in trainable.initial_weights().values()]
    assert shapes == [(30, 1), (1,)]
    label, scores = run_onnx(trainable.model, X)
    np.testing.assert_allclose(scores, estimator.predict_proba(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(label, estimator.predict(X))


class Mine(Ridge):
    """Ridge with other predictions."""

    def predict(self, X):
        return super().predict(X) + 1


@pytest.mark.parametrize(
    "model",
    [
        Mine(),
        make_pipeline(StandardScaler(), Mine()),
        VotingRegressor([("a", Ridge()), ("b", make_pipeline(StandardScaler(), Mine()))]),
        GridSearchCV(Mine(), {"alpha": [1.0]}, cv=2),
        TransformedTargetRegressor(Mine(), transformer=StandardScaler()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_error_names_the_class_without_definition(model, diabetes):
    with pytest.raises(
        ConversionError, match=r"^Mine has no model definition, .* declare one in .* skl2onnx"
    ):
        to_trainable(model.fit(diabetes.X_train, diabetes.y_train))


def test_model_without_weights_is_rejected(diabetes):
    bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform").fit(diabetes.X_train)
    with pytest.raises(ConversionError, match="no weight to train"):
        to_trainable(bins)


@pytest.mark.parametrize("source", [3, None, [1], object()])
def test_invalid_sources(source):
    with pytest.raises(ConversionError, match="neither a scikit-learn estimator nor an ONNX model"):
        to_trainable(source)


def test_unfitted_estimator():
    with pytest.raises(ConversionError, match="features of Ridge is unknown"):
        to_trainable(Ridge())


@pytest.mark.parametrize(
    "estimator, n_iter",
    [
        (MLPClassifier((4,), max_iter=50), 1),
        (MLPRegressor(hidden_layer_sizes=(4,), max_iter=50, early_stopping=True), 1),
        (make_pipeline(StandardScaler(), SGDClassifier(max_iter=50)), 1),
        (LogisticRegression(max_iter=50), 1),
    ],
)
def test_fitting_for_shapes_is_fast(wine, estimator, n_iter):
    before = repr(estimator.get_params())
    fitted = fit_clone(
        estimator, wine.X_train, wine.y_train, shapes_only=True, random_state=np.random.RandomState(0)
    )
    assert repr(estimator.get_params()) == before and not is_fitted(estimator) and is_fitted(fitted)
    last = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    assert np.max(last.n_iter_) == n_iter


def test_fitting_is_reproducible_and_has_all_classes(wine):
    first, second = (
        fit_clone(
            MLPClassifier((4,), max_iter=3),
            wine.X_train[:20],
            np.repeat(["a", "b"], 10),
            classes=["a", "b", "c"],
            random_state=np.random.RandomState(5),
        )
        for _ in range(2)
    )
    assert first.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(first.coefs_[0], second.coefs_[0])


def test_sample_weight_is_passed_to_estimators_that_support_it(diabetes):
    weight = np.linspace(0, 1, len(diabetes.y_train))
    ours = fit_clone(Ridge(), diabetes.X_train, diabetes.y_train, sample_weight=weight)
    theirs = Ridge().fit(diabetes.X_train, diabetes.y_train, sample_weight=weight)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


def test_labels_of_shape_n_1(diabetes):
    assert fit_clone(Ridge(), diabetes.X_train, diabetes.y_train[:, None]).coef_.ndim == 1


def test_layers_with_equal_intercepts(run_onnx):
    X = np.random.RandomState(0).randn(20, 4).astype(np.float32)
    network = MLPRegressor(hidden_layer_sizes=(4, 4), max_iter=2, random_state=0, solver="sgd").fit(
        X, X[:, 0]
    )
    for intercept in network.intercepts_:
        intercept[:] = 0
    trainable = to_trainable(network)
    assert len(trainable.trained) == 6
    model = trainable.with_weights(trainable.initial_weights())
    np.testing.assert_allclose(np.ravel(run_onnx(model, X)[0]), network.predict(X), rtol=1e-4, atol=1e-5)
