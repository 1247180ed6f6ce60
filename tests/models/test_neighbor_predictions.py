"""Predictions from float32 distances, computed by differences or by products."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.decomposition import KernelPCA
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor

from ortlearn.models.formulas.distances import EXACT
from ortlearn.trainable.from_estimator import sklearn_to_onnx

X, Y = load_diabetes(return_X_y=True)
X = (20 * X[:60, :5]).astype(np.float32).astype(np.float64)
Y = Y[:60]
SMALL = X, Y
#: Distances to more numbers are computed by products; the others are far away.
FAR = np.random.default_rng(0).normal(1000, 100, size=(1600, 5)).astype(np.float32)
LARGE = np.vstack([X, FAR]), np.append(Y, np.zeros(len(FAR)))
SAMPLES = np.vstack([X[:5], X[5:15] + 0.125])  # some are samples of the fit

MODELS = {
    "neighbours": KNeighborsRegressor(3),
    "two targets": KNeighborsRegressor(3),
    "by distance": KNeighborsRegressor(3, weights="distance"),
    "manhattan": KNeighborsRegressor(3, metric="manhattan", weights="distance"),
    "minkowski": KNeighborsRegressor(3, metric="minkowski", p=3),
    "radius": RadiusNeighborsRegressor(3.0),
    "kernel": KernelPCA(3, kernel="rbf", gamma=0.1),
    "polynomial": KernelPCA(3, kernel="poly", gamma=0.1),
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_values(run_onnx, name, exact):
    X, Y = SMALL if exact else LARGE
    assert (X.size > EXACT) is not exact
    targets = np.stack([Y, -Y], axis=1) if "targets" in name else Y
    model = clone(MODELS[name]).fit(X, targets)
    onx = sklearn_to_onnx(model, 5)
    assert not {"Scan", "ArrayFeatureExtractor"} & {node.op_type for node in onx.graph.node}
    found = run_onnx(onx, SAMPLES.astype(np.float32))[0]
    expected = model.transform(SAMPLES) if hasattr(model, "transform") else model.predict(SAMPLES)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=2e-4, atol=2e-3)
