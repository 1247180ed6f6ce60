"""Predictions, losses and scores of many samples are computed in chunks."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from ortlearn.data.columns import Columns
from ortlearn.inference.sample_chunks import BoundedCall, by_chunks
from ortlearn.training.optimisations import activations
from tests.estimators.array_graphs import FILES, trainer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def results(model, X, y):
    methods = [name for name in ("predict", "predict_proba", "decision_function") if hasattr(model, name)]
    return [*(getattr(model, name)(X) for name in methods), model.losses(X, y), model.score(X, y)]


@pytest.mark.parametrize("name", ["pixels", "steps", "forecast"])
@pytest.mark.parametrize("named", [False, True])
def test_positions(name, named, monkeypatch):
    from ortlearn import OrtGradientOptimizer

    file = FILES[name]
    X, y = file.samples(40)
    y = np.array(["a", "b", "c", "d"])[y] if named and file.n_classes else y
    options = {"early_stopping": True, "max_iter": 2, "estimator": file.model(np.float32, symbolic=True)}
    whole = trainer(OrtGradientOptimizer, file, **options).fit(X, y)
    expected = results(whole, X, y)
    limit = 3 * activations.activation_bytes(file.model(np.float32))
    monkeypatch.setattr(activations, "MAX_ACTIVATIONS", limit)
    calls, n_samples = [], BoundedCall.n_samples

    def recorded(self, inputs):
        calls.append(n_samples(self, inputs))
        return calls[-1]

    monkeypatch.setattr(BoundedCall, "n_samples", recorded)
    parts = trainer(OrtGradientOptimizer, file, **options).fit(X, y)
    for own, known in zip(results(parts, X, y), expected, strict=True):
        if getattr(known, "dtype", np.dtype(float)).kind == "f":
            np.testing.assert_allclose(own, known, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(own, known)
    np.testing.assert_allclose(parts.validation_scores_, whole.validation_scores_, rtol=1e-5)
    assert calls and all(1 <= size <= 4 for size in calls)


def test_several_outputs_and_matrices(monkeypatch, optimizer):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.stack([X[:, 0] > 0, X[:, 1] > X[:, 2]], axis=1).astype(int)
    models = [
        optimizer(MultiOutputClassifier(LogisticRegression()), max_iter=3).fit(X, y),
        optimizer(LogisticRegression(), max_iter=3).fit(csr_matrix(X), y[:, 0]),
    ]
    whole = [models[0].predict_proba(X), [models[1].predict_proba(csr_matrix(X))]]
    monkeypatch.setattr(activations, "MAX_ACTIVATIONS", 100)
    for model, rows, expected in zip(models, (X, csr_matrix(X)), whole, strict=True):
        model._fitted.inference._calls.values.clear()
        found = model.predict_proba(rows)
        for own, known in zip(found if isinstance(found, list) else [found], expected, strict=True):
            np.testing.assert_allclose(own, known, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 10, 100])
@pytest.mark.parametrize("kind", ["matrix", "sparse", "columns"])
def test_every_sample_once(kind, size):
    X = np.arange(20.0).reshape(10, 2)
    rows = {"matrix": X, "sparse": csr_matrix(X), "columns": Columns({"x": X})}[kind]
    seen = []

    def total(part, others):
        array = part.arrays["x"] if kind == "columns" else part.toarray() if kind == "sparse" else part
        seen.append(len(array))
        return array.sum(axis=1) + others

    np.testing.assert_array_equal(by_chunks(total, lambda part: size, rows, np.ones(10)), X.sum(axis=1) + 1)
    assert max(seen) == min(size, 10) and sum(seen) == 10
    assert by_chunks(lambda part, _: np.ones(part.shape[0]), lambda part: size, rows[:0], X[:0]).shape == (0,)
