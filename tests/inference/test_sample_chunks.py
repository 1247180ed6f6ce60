"""Predictions, losses and scores of many samples are computed in chunks."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.linear_model import LogisticRegression

from ortlearn import OrtGradientOptimizer
from ortlearn.data.columns import Columns
from ortlearn.inference.running import Inference
from ortlearn.inference.sample_chunks import by_chunks
from ortlearn.training.optimisations.activations import MAX_ACTIVATIONS, activation_bytes
from tests.calls import calls_of
from tests.estimators.array_graphs import FILES, trainer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def results(model, X, y):
    methods = [name for name in ("predict", "predict_proba", "decision_function") if hasattr(model, name)]
    return [*(getattr(model, name)(X) for name in methods), model.losses(X, y), model.score(X, y)]


@pytest.mark.slow
@pytest.mark.parametrize("name, named", [("pixels", True), ("pixels", False), ("forecast", False)])
def test_positions(name, named):
    """The results of many samples are those of a few, repeated."""
    file = FILES[name]
    X, y = file.samples(40)
    y = np.array(["a", "b", "c", "d"])[y] if named and file.n_classes else y
    options = {"max_iter": 2, "estimator": file.model(np.float32, symbolic=True)}
    model = trainer(OrtGradientOptimizer, file, **options).fit(X, y)
    *few, few_losses, few_score = results(model, X, y)
    repeats = MAX_ACTIVATIONS // (len(X) * activation_bytes(file.model(np.float32))) + 2
    many = [np.concatenate([part] * repeats) for part in (X, y)]
    with calls_of(Inference._run_chunk) as calls:
        *found, losses, score = results(model, *many)
    assert len(calls) >= 2 * len(few)
    for own, known in zip([*found, losses], [*few, few_losses], strict=True):
        known = np.concatenate([known] * repeats)
        if known.dtype.kind == "f":
            np.testing.assert_allclose(own, known, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(own, known)
    assert score == pytest.approx(few_score, rel=1e-4)


@pytest.mark.slow
def test_sparse_matrices(optimizer):
    """Chunks that are made dense have a limited size."""
    X = random_array((600, 20_000), density=0.04, format="csr", random_state=0)
    model = optimizer(LogisticRegression(), max_iter=1, learning_rate="SGD").fit(X[:40], np.arange(40) % 2)
    with calls_of(Inference._run_chunk) as calls:
        found = model.predict_proba(X)
    assert len(calls) > 2
    np.testing.assert_allclose(found, model.predict_proba(X.toarray()), rtol=1e-5)


def test_lists_of_results():
    """As of several outputs."""
    X = np.arange(20.0).reshape(10, 2)
    first, second = by_chunks(lambda part: [part, part.sum(axis=1)], lambda part: 3, X)
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, X.sum(axis=1))


@pytest.mark.parametrize("size", [1, 3, 10, 100])
@pytest.mark.parametrize("kind", ["matrix", "sparse", "columns"])
def test_every_sample_once(kind, size):
    X = np.arange(20.0).reshape(10, 2)
    samples = {"matrix": X, "sparse": csr_matrix(X), "columns": Columns({"x": X})}[kind]
    seen = []

    def total(part, others):
        array = part.arrays["x"] if kind == "columns" else part.toarray() if kind == "sparse" else part
        seen.append(len(array))
        return array.sum(axis=1) + others

    np.testing.assert_array_equal(
        by_chunks(total, lambda part: size, samples, np.ones(10)), X.sum(axis=1) + 1
    )
    assert max(seen) == min(size, 10) and sum(seen) == 10
    assert by_chunks(lambda part, _: np.ones(part.shape[0]), lambda part: size, samples[:0], X[:0]).shape == (
        0,
    )
