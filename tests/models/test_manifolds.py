"""Isomap and locally linear embedding: embeddings of new samples."""

import numpy as np
import pytest
from sklearn.manifold import Isomap, LocallyLinearEmbedding

from ortlearn.graphs import TensorType
from ortlearn.models import all_covered, write_model, write_parameters
from ortlearn.testing import check_model
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
ANGLES = RNG.uniform(0, 4, size=60)
X = np.column_stack([np.cos(ANGLES), np.sin(ANGLES), RNG.uniform(size=60)]) * [1, 1, 2]
SAMPLES = X[:15] + 0.02 * RNG.normal(size=(15, 3))
MODELS = [
    Isomap(n_neighbors=6),
    Isomap(n_neighbors=5, n_components=1, metric="manhattan"),
    Isomap(n_neighbors=8, metric="minkowski", p=3, path_method="FW"),
    LocallyLinearEmbedding(n_neighbors=6, random_state=0),
    LocallyLinearEmbedding(n_neighbors=2, n_components=1, reg=0.1, random_state=0),
    LocallyLinearEmbedding(n_neighbors=8, method="modified", random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_new_samples(run, run_onnx, model):
    model.fit(X)
    check_model(model, SAMPLES, run=run)
    expected = model.transform(SAMPLES)
    found = run_onnx(sklearn_to_onnx(model), SAMPLES.astype(np.float32))[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("model", MODELS[::3], ids=str)
def test_samples_of_the_fit_far_from_zero(run_onnx, model):
    model.fit(X + 1000)
    found = run_onnx(sklearn_to_onnx(model, dtype=np.float64), X + 1000)[0]
    expected = model.transform(X + 1000)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_write_back_updates_the_embedding():
    model = Isomap(n_neighbors=6).fit(X)
    written = write_model(model, {"X": TensorType(1, (None, 3))}, np.float64)
    trained = [name for name, parameter in written.parameters.items() if not parameter.reason]
    assert sorted(trained) == ["K_fit_all", "K_fit_rows", "eigenvectors"]
    values = {"eigenvectors": 2 * written.parameters["eigenvectors"].value(model)}
    result = write_parameters(model, written.parameters, values)
    np.testing.assert_allclose(result.embedding_, 2 * model.embedding_, atol=1e-8)


def test_neighbours_within_a_radius_have_no_definition():
    assert not all_covered(Isomap(n_neighbors=None, radius=1.5).fit(X))
