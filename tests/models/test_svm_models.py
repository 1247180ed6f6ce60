"""Predictions of support vector machines converted to ONNX."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.linear_model import Perceptron
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM

from ortlearn.exceptions import ConversionError
from ortlearn.trainable.from_estimator import sklearn_to_onnx

KERNELS = ["linear", "poly", "rbf", "sigmoid"]
#: scikit-learn deprecates probability=True.
CALIBRATED = pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order].astype(np.float32), y[order]


def labels_of(y, kind, n_classes):
    """Return labels of two or three classes as integers or text."""
    y = y if n_classes == 3 else (y > 0).astype(int)
    return {"ints": 5 - 2 * y, "text": np.array(["setosa", "versicolor", "virginica"])[y]}[kind]


def model_of(kind, kernel, **settings):
    scaled = {"poly": {"coef0": 1.0}, "sigmoid": {"gamma": 0.05}}.get(kernel, {})
    return make_pipeline(StandardScaler(), kind(kernel=kernel, **scaled, **settings))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "kind, n_classes, labels", [(SVC, 2, "ints"), (NuSVC, 2, "text"), (NuSVC, 3, "ints"), (SVC, 3, "text")]
)
def test_classifiers(run_onnx, iris, kernel, kind, n_classes, labels):
    X, y = iris
    model = model_of(kind, kernel, **({"nu": 0.2} if kind is NuSVC else {}))
    model.fit(X, labels_of(y, labels, n_classes))
    label, decision = run_onnx(sklearn_to_onnx(model, 4), X)
    assert label.tolist() == model.predict(X).tolist()
    expected = model.decision_function(X).reshape(decision.shape)
    np.testing.assert_allclose(decision, expected, rtol=1e-4, atol=1e-4)


def test_one_column_per_pair(run_onnx, iris):
    X, y = iris
    model = SVC(decision_function_shape="ovo").fit(X, y)
    label, decision = run_onnx(sklearn_to_onnx(model, 4), X)
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(decision, model.decision_function(X), rtol=1e-4, atol=1e-5)


@CALIBRATED
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(run_onnx, iris, n_classes):
    X, y = iris
    model = SVC(probability=True, random_state=0).fit(X, labels_of(y, "ints", n_classes))
    label, probabilities = run_onnx(sklearn_to_onnx(model, 4), X)
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind, dtype", [(SVR, np.float64), (NuSVR, np.float32)])
def test_regressors(run_onnx, iris, kernel, kind, dtype):
    X, _ = iris
    model = model_of(kind, kernel).fit(X[:, :3], X[:, 3])
    (values,) = run_onnx(sklearn_to_onnx(model, 3, dtype), X[:, :3].astype(dtype))
    assert values.dtype == dtype
    np.testing.assert_allclose(values.ravel(), model.predict(X[:, :3]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_novelty_detection(run_onnx, iris, kernel):
    X, _ = iris
    model = model_of(OneClassSVM, kernel, nu=0.2).fit(X)
    label, decision = run_onnx(sklearn_to_onnx(model, 4), X)
    expected = model.decision_function(X)
    np.testing.assert_allclose(decision.ravel(), expected, rtol=1e-4, atol=1e-4)
    clear = np.abs(expected) > 1e-4
    assert label.ravel()[clear].tolist() == model.predict(X)[clear].tolist()


def test_sparse_features(run_onnx, iris):
    X, y = iris
    for model in (SVC().fit(csr_array(X), y), SVR().fit(csr_array(X), y)):
        found = run_onnx(sklearn_to_onnx(model, 4), X)[0].ravel()
        np.testing.assert_allclose(found, model.predict(csr_array(X)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("meta", [OneVsRestClassifier, OneVsOneClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_against_others(run_onnx, iris, meta, n_classes):
    X, y = iris
    model = meta(SVC()).fit(X, labels_of(y, "ints", n_classes) - 1)
    label = run_onnx(sklearn_to_onnx(model, 4), X)[0]
    assert label.ravel().tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_other_kernels_are_refused(kind):
    X = np.eye(6)
    model = kind(kernel=lambda a, b: a @ b.T).fit(X, [0, 1, 0, 1, 0, 1])
    with pytest.raises(
        ConversionError,
        match=r"its kernel is a Python function.* See docs/limits\.md#unsupported-parameters$",
    ):
        sklearn_to_onnx(model, 6)


@pytest.mark.parametrize("member", [SVC(), LinearSVC(), Perceptron()], ids=str)
def test_decisions_of_one_vs_rest(run_onnx, iris, member):
    X, y = iris
    model = make_pipeline(StandardScaler(), OneVsRestClassifier(member)).fit(X, y)
    label, decision = run_onnx(sklearn_to_onnx(model, 4), X)
    assert label.ravel().tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(decision, model.decision_function(X), rtol=1e-4, atol=1e-4)


def test_calibrated_decisions_use_standard_operators(iris):
    X, y = iris
    model = CalibratedClassifierCV(SVC(), cv=2).fit(X, y)
    assert {node.domain for node in sklearn_to_onnx(model, 4).graph.node} == {""}
