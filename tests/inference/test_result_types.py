"""Results are float64, also of float32 models, unless X is float32."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from ortlearn import OrtGradientOptimizer
from ortlearn.inference.result_types import probabilities_as_floats_of

MODELS = {
    "two classes": (LogisticRegression(), "binary", "predict_proba predict_log_proba decision_function"),
    "classes": (LogisticRegression(), "classes", "predict_proba predict_log_proba decision_function"),
    "labels": (MLPClassifier(4, max_iter=20), "labels", "predict_proba decision_function"),
    "classes of two outputs": (RandomForestClassifier(2, max_depth=2), "both", "predict_proba"),
    "values": (Ridge(), "values", "predict"),
    "clusters": (KMeans(3, n_init=1), None, "transform"),
    "mixture": (GaussianMixture(2), None, "predict_proba score_samples"),
    "scaler": (StandardScaler(), "columns", "transform"),
    "components": (PCA(2), "columns of two", "transform"),
    "outliers": (OneClassSVM(), "ones", "decision_function"),
}
CASES = [(name, method) for name, (_, _, methods) in MODELS.items() for method in methods.split()]


@pytest.fixture(scope="module")
def samples():
    return np.random.RandomState(0).normal(size=(60, 3))


def target(kind, X):
    if kind is None:
        return None
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    two = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    found = {
        "binary": two[:, 0],
        "classes": classes,
        "labels": two,
        "both": two,
        "columns": X,
        "columns of two": X[:, :2],
        "values": X @ [1.0, 2.0, 3.0],
    }
    return found.get(kind, np.ones(len(X)))


@pytest.fixture(scope="module")
def trained(samples):
    made = {}

    def get(name, dtype="float32"):
        if (name, dtype) not in made:
            model, kind, _ = MODELS[name]
            trainer = OrtGradientOptimizer(
                model, learning_rate=1e-5, warm_start=True, max_iter=1, random_state=0, dtype=dtype
            )
            y = target(kind, samples)
            made[name, dtype] = trainer.fit(samples, y)
        return made[name, dtype]

    return get


def types(found):
    return {part.dtype for part in (found if isinstance(found, list) else [found])}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name, method", CASES)
def test_type_of_results(name, method, samples, trained):
    call, double = getattr(trained(name), method), getattr(trained(name, "float64"), method)
    assert types(call(samples)) == {np.dtype("float64")}
    assert types(call(samples.astype(np.float32))) == {np.dtype("float32")}
    assert types(double(samples)) == types(double(samples.astype(np.float32))) == {np.dtype("float64")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["values", "classes"])
def test_type_of_losses(name, samples, trained):
    y = target(MODELS[name][1], samples)
    assert trained(name).losses(samples, y).dtype == np.float64
    assert trained(name).losses(samples.astype(np.float32), y).dtype == np.float32


FORMS = {
    "list": (lambda X: X.tolist(), "float64"),
    "integers": (lambda X: X.astype(int), "float64"),
    "float16": (lambda X: X.astype(np.float16), "float64"),
    "csr float64": (csr_matrix, "float64"),
    "csr float32": (lambda X: csr_matrix(X.astype(np.float32)), "float32"),
    "pandas float64": (pd.DataFrame, "float64"),
    "pandas float32": (lambda X: pd.DataFrame(X.astype(np.float32)), "float32"),
    "pandas of both": (lambda X: pd.DataFrame(X).astype({0: np.float32}), "float64"),
    "polars float32": (lambda X: pl.DataFrame(X.astype(np.float32), schema=["a", "b", "c"]), "float32"),
    "polars float64": (lambda X: pl.DataFrame(X, schema=["a", "b", "c"]), "float64"),
}


@pytest.mark.parametrize("form", FORMS)
def test_float32_inputs(form, samples):
    make, expected = FORMS[form]
    X = make(samples)
    model = OrtGradientOptimizer(Ridge(), max_iter=1, random_state=0).fit(X, samples[:, 0])
    assert model.predict(X).dtype == expected


def test_column_named_dtype(samples):
    X = pd.DataFrame(samples, columns=["dtype", "dtypes", "shape"])
    model = OrtGradientOptimizer(LogisticRegression(), max_iter=1, random_state=0)
    assert model.fit(X, samples[:, 0] > 0).predict_proba(X).dtype == np.float64


@pytest.mark.parametrize("name", ["two classes", "classes", "mixture", "classes of two outputs"])
def test_probabilities_sum_to_one_in_float64(name, samples, trained):
    found = trained(name).predict_proba(samples)
    of_float32 = trained(name).predict_proba(samples.astype(np.float32))
    several = isinstance(found, list)
    pairs = zip(found, of_float32, strict=True) if several else [(found, of_float32)]
    for wide, narrow in pairs:
        np.testing.assert_allclose(wide.sum(axis=1), 1, rtol=0, atol=1e-15)
        np.testing.assert_allclose(wide, narrow, rtol=1e-6)


def test_log_loss_accepts_the_probabilities():
    X = np.random.RandomState(0).normal(size=(2000, 5))
    y = np.digitize(X[:, 0], [-1, -0.5, 0, 0.5, 1])
    model = OrtGradientOptimizer(LogisticRegression(), max_iter=2, random_state=0).fit(X, y)
    # log_loss warns of sums that are one in float32 only.
    assert log_loss(y, model.predict_proba(X)) == pytest.approx(
        log_loss(y, model.predict_proba(X.astype(np.float32))), rel=1e-5
    )


def test_sums_other_than_one_are_kept():
    X = np.zeros((2, 1))
    zeros = probabilities_as_floats_of(X, np.zeros((2, 3), dtype=np.float32), True)
    assert zeros.dtype == np.float64 and not zeros.any()
    labels = np.array([[0.5, 0.5000001], [0.2, 0.9]], dtype=np.float32)
    np.testing.assert_array_equal(probabilities_as_floats_of(X, labels, False), labels.astype(np.float64))
