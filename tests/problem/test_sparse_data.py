"""Training and prediction on sparse X equal those on dense X."""

from itertools import cycle, product

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

from ortlearn.data.samples import Data
from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.problem.input_validation import read_samples
from ortlearn.runtime.devices import Device
from ortlearn.training.loop import run_training
from ortlearn.training.optimisations.hoisting import LIMITS, hoist
from ortlearn.training.settings import LoopSettings
from ortlearn.training.state import TrainingState
from ortlearn.training.steps.epoch_step import EpochStep

N_SAMPLES = 150
X, Y = make_classification(N_SAMPLES, 120, n_informative=6, random_state=0)
X = np.where(np.abs(X) > 2.5, X, 0.0)  # few entries, since others are trained on as dense samples
SPARSE = scipy.sparse.csr_matrix(X)
OPTIONS = {"learning_rate": "SGD", "batch_size": 16, "max_iter": 4, "random_state": 0, "dtype": "float64"}
MODELS = {
    "binary": (LogisticRegression(), Y),
    "classes": (LogisticRegression(), Y + (np.arange(N_SAMPLES) % 3 == 0)),
    "regression": (Ridge(), X @ np.arange(120.0) / 4),
    "outputs": (LinearRegression(), np.stack([X[:, 0], Y], axis=1)),
    "network": (MLPClassifier((6, 5)), Y),
    "frozen scale": (make_pipeline(MaxAbsScaler(), LogisticRegression()), Y),
}
SETTINGS = {
    "plain": {},
    "solver": {"learning_rate": "LBFGS", "max_iter": 20},
    "early stopping": {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 20},
    "averages": {"average": 3},
    "Adam": {"learning_rate": "Adam"},
    "frozen": {"weights_to_train": "*coef*"},
    "bounded": {"clip_norm": 0.05},
    "warm": {"warm_start": True},
}


@pytest.fixture
def conversion_is_an_error(monkeypatch):
    """Raise an error if more than ten sparse rows are converted to dense ones."""
    whole = scipy.sparse.csr_matrix.toarray

    def toarray(self, *arguments, **options):
        assert self.shape[0] <= 10, f"{self.shape[0]} rows were converted"
        return whole(self, *arguments, **options)

    monkeypatch.setattr(scipy.sparse.csr_matrix, "toarray", toarray)


def assert_same(left, right, samples=SPARSE, dense=X, tol=1e-8):
    for name, array in right.trained_coef_.items():
        np.testing.assert_allclose(left.trained_coef_[name], array, rtol=tol, atol=tol, err_msg=name)
    assert left.n_iter_ == right.n_iter_
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(right, method):
            found, expected = getattr(left, method)(samples), getattr(right, method)(dense)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    model, y = MODELS[name]
    left, right = (OrtGradientOptimizer(model, **OPTIONS).fit(samples, y) for samples in (SPARSE, X))
    assert_same(left, right)


@pytest.mark.sweep(4)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "case"), list(zip(cycle(["binary", "classes", "network"]), SETTINGS, strict=False))
)
def test_parameters(name, case):
    model, y = MODELS[name]
    weight = np.random.default_rng(1).uniform(0, 2, size=N_SAMPLES)
    options = {**OPTIONS, **SETTINGS[case]}
    left, right = (OrtGradientOptimizer(model, **options).fit(samples, y, weight) for samples in (SPARSE, X))
    assert_same(left, right, tol=1e-4 if case == "solver" else 1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["binary", "classes", "network"])
@pytest.mark.parametrize("case", ["plain", "solver", "early stopping", "warm"])
def test_samples_are_not_converted_to_dense(name, case, conversion_is_an_error):
    model, y = MODELS[name]
    options = {**OPTIONS, **SETTINGS[case]}
    if case == "warm":  # compared with the start
        model = clone(model).fit(SPARSE, y)
    trained = OrtGradientOptimizer(model, **options).fit(SPARSE, y)
    assert trained.score(SPARSE, y) > 0.3
    assert np.isfinite(trained.losses(SPARSE, y)).all()


@pytest.mark.slow
def test_partial_fit_and_fit_stream(conversion_is_an_error):
    parts = [slice(start, start + 40) for start in range(0, N_SAMPLES, 40)]
    options = {**OPTIONS, "max_iter": 1, "learning_rate": "Adam"}
    left, right = (OrtGradientOptimizer(LogisticRegression(), **options) for _ in range(2))
    for part in parts * 2:
        left.partial_fit(SPARSE[part], Y[part], classes=[0, 1])
        right.partial_fit(X[part], Y[part], classes=[0, 1])
    assert_same(left, right)
    options = {**OPTIONS, "shuffle": False}
    left = OrtGradientOptimizer(LogisticRegression(), **options)
    left.fit_stream([(SPARSE[part], Y[part]) for part in parts], shuffle_buffer=64)
    assert_same(left, OrtGradientOptimizer(LogisticRegression(), **options).fit(X, Y))


def test_both_estimators_give_the_same_weights():
    kinds = OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer
    left, right = (kind(MLPClassifier((6,)), **OPTIONS).fit(SPARSE, Y) for kind in kinds)
    assert_same(left, right, dense=SPARSE)


def test_text():
    """Large outputs of a vectorizer stay sparse."""
    words = np.array([f"word{number}" for number in range(400)])
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, size=9)) for _ in range(N_SAMPLES)]
    labels = np.arange(N_SAMPLES) % 2
    fitted = OrtGradientOptimizer(make_pipeline(TfidfVectorizer(), LogisticRegression()), **OPTIONS)
    fitted = fitted.fit(texts, labels)._fitted
    task, X = fitted.problem.task(False), read_samples(fitted.problem, texts, fitted.features)
    data, device = Data(X, fitted.problem.encoder.encode(labels, N_SAMPLES)), Device("cpu")
    found = []
    in_onnx = task.changed(transformers={})
    assert task.graph.transformers and task.graph_key() == in_onnx.graph_key()
    for sparse, whole in product((2**28, 0), (task, in_onnx)):
        left, computed = hoist(whole, data, device, None, LIMITS._replace(sparse=sparse))
        assert computed.is_sparse == (sparse == 0)
        weights = {name: np.zeros(shape) for name, shape in shapes_of(left).items()}
        settings = LoopSettings(max_iter=3, batch_size=16)
        state = run_training(EpochStep(left, device), computed, TrainingState(weights), settings)
        found.append(state.weights)
    for name, array in found[0].items():
        for other in found[1:]:
            np.testing.assert_allclose(array, other[name], rtol=1e-8, atol=1e-12)


def shapes_of(task):
    """Return the shapes of the weights of a task."""
    values = {value.name: value.type.tensor_type.shape.dim for value in task.graph.model.graph.input}
    return {name: [dim.dim_value for dim in values[name]] for name in task.graph.weights}


def test_one_hot_columns(conversion_is_an_error):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 40, size=(N_SAMPLES, 3))
    target = (table == 7).sum(axis=1) + 0.1 * rng.normal(size=N_SAMPLES)
    encoded = OneHotEncoder(dtype=np.float64).fit_transform(table)
    left = OrtGradientOptimizer(Ridge(), **OPTIONS).fit(encoded, target)
    samples = np.concatenate([encoded[start : start + 10].toarray() for start in range(0, N_SAMPLES, 10)])
    right = OrtGradientOptimizer(Ridge(), **OPTIONS).fit(samples, target)
    assert_same(left, right, encoded, samples)
