"""Support vector machines: graph, gradients, training and write-back."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils import get_tags

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError, ObjectiveWarning
from ortlearn.graphs import TensorType
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.models import write_model, write_parameters
from ortlearn.testing import check_model

RNG = np.random.RandomState(0)
X = RNG.normal(size=(70, 3)) + 0.3
Y = X[:, 0] - X[:, 1] ** 2 + 0.1 * RNG.normal(size=70)
THREE = np.digitize(Y, [-1.5, 0.0])
TEXT = np.array(["low", "mid", "top"])[THREE]
KERNELS = {
    "linear": {},
    "rbf": {},
    "poly": {"coef0": 1.0, "degree": 3},
    "sigmoid": {"gamma": 0.1, "coef0": 0.2},
}

pytestmark = pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")


def written(model, dtype=np.float64):
    return write_model(model, {"X": TensorType(11 if dtype == np.float64 else 1, (None, 3))}, dtype)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", [SVR, NuSVR, OneClassSVM])
def test_one_score(kind, kernel, run):
    check_model(kind(kernel=kernel, **KERNELS[kernel]).fit(X, Y), X, run=run)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("y", [THREE > 0, THREE, TEXT], ids=["two", "three", "text"])
def test_classifiers(y, kernel, run):
    check_model(SVC(kernel=kernel, **KERNELS[kernel]).fit(X, y), X, run=run)


@pytest.mark.parametrize("y", [THREE > 0, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "settings",
    [
        {"decision_function_shape": "ovo"},
        {"break_ties": True},
        {"probability": True, "random_state": 0},
        {"probability": True, "random_state": 0, "break_ties": True},
        {"probability": True, "random_state": 0, "decision_function_shape": "ovo"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [SVC, lambda **params: NuSVC(nu=0.2, **params)], ids=["SVC", "NuSVC"])
def test_settings_of_classifiers(kind, settings, y, run):
    check_model(kind(**settings).fit(X, y), X, run=run)


@pytest.mark.slow
def test_many_classes_and_ties(run):
    """Ties of votes are broken as in libsvm, or by confidence with break_ties=True."""
    many = np.digitize(Y, np.quantile(Y, [0.2, 0.4, 0.6, 0.8]))
    for break_ties in (False, True):
        model = SVC(break_ties=break_ties, probability=True, random_state=0).fit(X, many)
        check_model(model, X, run=run)
        model.intercept_, model._intercept_ = np.zeros(10), np.zeros(10)
        model.dual_coef_, model._dual_coef_ = 0 * model.dual_coef_, 0 * model._dual_coef_
        labels = run(written(model).model, {"X": X})[0]
        np.testing.assert_array_equal(labels, model.predict(X))


def test_linear_detector(run):
    check_model(SGDOneClassSVM(random_state=0).fit(X), X, run=run)


@pytest.mark.parametrize("kind", [SVR, SVC, OneClassSVM])
def test_sparse_fits(kind, run):
    samples = csr_matrix(np.where(np.abs(X) < 0.3, 0.0, X))
    model = kind().fit(samples, THREE)
    check_model(model, samples.toarray(), run=run)
    graph = written(model)
    values = {name: 1.1 * parameter.value(model) for name, parameter in graph.parameters.items()}
    changed = write_parameters(model, graph.parameters, values)
    assert type(changed.dual_coef_) is type(model.dual_coef_)
    np.testing.assert_allclose(changed.predict(samples), changed.predict(samples.toarray()))


def test_names_and_constraints():
    model = SVC(probability=True, random_state=0).fit(X, THREE)
    found = {
        p.expression: (p.reason != "", p.constraint and p.constraint.text)
        for p in written(model).parameters.values()
    }
    assert found == {
        "support_vectors_": (False, None),
        "_gamma": (True, None),
        "dual_coef_": (False, None),
        "intercept_": (False, None),
        "_probA": (False, "kept negative"),
        "_probB": (False, None),
    }


def test_sums_that_cancel_in_float32(run):
    """Terms of both signs nearly cancel, and samples are far from zero."""
    samples = X.astype(np.float32) + np.float32(1000)
    model = SVR(C=1e4, gamma=0.5).fit(samples.astype(np.float64), Y)
    found = run(written(model, np.float32).model, {"X": samples})[0]
    scale = np.abs(model.dual_coef_).sum()
    np.testing.assert_allclose(found.ravel(), model.predict(samples), atol=1e-6 * scale)


def test_callable_kernels_are_refused():
    model = SVC(kernel=lambda a, b: a @ b.T).fit(X, THREE)
    with pytest.raises(ConversionError, match="its kernel is a Python function"):
        write_model(model, {"X": TensorType(1, (None, X.shape[1]))})


@pytest.mark.parametrize("y", [THREE > 0, THREE, TEXT], ids=["two", "three", "text"])
@pytest.mark.parametrize("kind", [SVC, lambda **params: NuSVC(nu=0.2, **params)], ids=["SVC", "NuSVC"])
def test_classifiers_of_precomputed_kernels(kind, y, run):
    """Samples have a kernel value for each sample of the fit, not only for support vectors."""
    model = kind(kernel="precomputed").fit(X @ X.T, y)
    assert len(model.support_) < len(X)
    check_model(model, (X[:20] + 0.1) @ X.T, run=run)


@pytest.mark.parametrize("kind", [SVR, NuSVR, OneClassSVM])
def test_scores_of_precomputed_kernels(kind, run):
    check_model(kind(kernel="precomputed").fit(X @ X.T, Y), (X[:20] + 0.1) @ X.T, run=run)


@pytest.mark.parametrize("kind", [SVR, SVC])
def test_a_precomputed_kernel_is_trained_as_a_linear_one(kind):
    y = Y if kind is SVR else THREE
    options = {"weights_to_train": ["dual_coef_", "intercept_"], "warm_start": True, "keep_better": False}
    options |= {"learning_rate": LearningRateSGD(1e-3), "max_iter": 3, "shuffle": False, "dtype": "float64"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ObjectiveWarning)
        inside = OrtGradientOptimizer(kind(kernel="linear").fit(X, y), **options).fit(X, y)
        before = OrtGradientOptimizer(kind(kernel="precomputed").fit(X @ X.T, y), **options).fit(X @ X.T, y)
    assert get_tags(before).input_tags.pairwise and not get_tags(inside).input_tags.pairwise
    method = "predict" if kind is SVR else "decision_function"
    found, expected = getattr(before, method)(X @ X.T), getattr(inside, method)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match="features"):
        before.predict(X)
