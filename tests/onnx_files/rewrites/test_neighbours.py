"""Estimators whose distances are rewritten predict what scikit-learn predicts."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.decomposition import KernelPCA
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    LocalOutlierFactor,
    RadiusNeighborsRegressor,
)

from ortlearn.conversion import sklearn_to_onnx
from ortlearn.models import distances

X, Y = load_diabetes(return_X_y=True)
X = (20 * X[:60, :5]).astype(np.float32).astype(np.float64)
Y = Y[:60]
ROWS = np.vstack([X[:5], X[5:15] + 0.125])  # some are rows of the fit

MODELS = {
    "neighbours": KNeighborsRegressor(3),
    "neighbours of two targets": KNeighborsRegressor(3),
    "by distance": KNeighborsRegressor(3, weights="distance"),
    "manhattan": KNeighborsRegressor(3, metric="manhattan", weights="distance"),
    "minkowski": KNeighborsRegressor(3, metric="minkowski", p=3),
    "radius": RadiusNeighborsRegressor(3.0),
    "kernel": KernelPCA(3, kernel="rbf", gamma=0.1),
    "polynomial": KernelPCA(3, kernel="poly", gamma=0.1),
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_values(run_onnx, monkeypatch, name, exact):
    if not exact:
        monkeypatch.setattr(distances, "EXACT", 10)
    targets = np.stack([Y, -Y], axis=1) if "targets" in name else Y
    model = MODELS[name].fit(X, targets)
    onx = sklearn_to_onnx(model, 5)
    assert not {"Scan", "ArrayFeatureExtractor"} & {node.op_type for node in onx.graph.node}
    found = run_onnx(onx, ROWS.astype(np.float32))[0]
    expected = model.transform(ROWS) if hasattr(model, "transform") else model.predict(ROWS)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_votes(run_onnx, weights):
    classes = np.array(["low", "high", "middle"])[np.digitize(Y, [100, 200])]
    model = KNeighborsClassifier(4, weights=weights).fit(X, classes)
    label, probabilities = run_onnx(sklearn_to_onnx(model, 5), ROWS.astype(np.float32))
    np.testing.assert_allclose(probabilities, model.predict_proba(ROWS), atol=1e-4)
    assert label.tolist() == model.predict(ROWS).tolist()


def test_distances_to_neighbours(run_onnx):
    model = KNeighborsTransformer(n_neighbors=3).fit(X)
    (found,) = run_onnx(sklearn_to_onnx(model, 5), ROWS.astype(np.float32))
    np.testing.assert_allclose(found, model.transform(ROWS).toarray(), atol=1e-5)


def test_outliers(run_onnx):
    model = LocalOutlierFactor(n_neighbors=5, novelty=True).fit(X)
    rows = np.vstack([X[::7] + 0.0625, X[:2] + 10])
    label, score = run_onnx(sklearn_to_onnx(model, 5), rows.astype(np.float32))[:2]
    assert label.ravel().tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(score.ravel(), model.decision_function(rows), rtol=1e-3, atol=1e-3)
