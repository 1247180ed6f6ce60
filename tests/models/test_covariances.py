"""EllipticEnvelope: predictions, training and write-back."""

import numpy as np
import pytest
from sklearn.covariance import EllipticEnvelope

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.graphs import TensorType
from ortlearn.models import all_covered, write_model, write_parameters
from ortlearn.testing import check_model
from ortlearn.trainable.from_estimator import sklearn_to_onnx

X = np.random.RandomState(0).normal(size=(80, 3)) @ [[1, 0.5, 0], [0, 1, 0.3], [0, 0, 2]] + 0.5
X[:8] += 6


@pytest.mark.parametrize("params", [{}, {"store_precision": False}, {"assume_centered": True}], ids=str)
def test_decisions_labels_gradients_and_write_back(params):
    check_model(EllipticEnvelope(random_state=0, **params).fit(X), X)


def test_float32(run_onnx):
    model = EllipticEnvelope(random_state=0).fit(X + 100)
    label, scores = run_onnx(sklearn_to_onnx(model), (X + 100).astype(np.float32))
    expected = model.decision_function(X + 100)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_array_equal(label.ravel(), model.predict(X + 100))


def test_write_back_updates_the_precision():
    model = EllipticEnvelope(random_state=0).fit(X)
    written = write_model(model, {"X": TensorType(1, (None, 3))}, np.float64)
    factor = 2 * written.parameters["covariance"].value(model)
    trained = write_parameters(model, written.parameters, {"covariance": factor})
    np.testing.assert_allclose(trained.covariance_, model.covariance_ / 4)
    np.testing.assert_allclose(trained.precision_, 4 * model.precision_)
    np.testing.assert_allclose(trained.score_samples(X), 4 * model.score_samples(X))


def test_known_outliers_are_learned():
    start = EllipticEnvelope(contamination=0.4, random_state=0).fit(X)
    y = np.where(np.arange(len(X)) < 8, -1, 1)
    ours = OrtGradientOptimizer(start, warm_start=True, max_iter=50, random_state=0).fit(X, y)
    assert np.mean(start.predict(X) == y) < 0.8 < 0.95 < np.mean(ours.predict(X) == y)
    np.testing.assert_array_equal(ours.to_sklearn().predict(X), ours.predict(X))


def test_a_singular_covariance_has_no_definition():
    flat = np.column_stack([X, X[:, 0]])
    with pytest.warns(UserWarning, match="not full rank"):
        assert not all_covered(EllipticEnvelope(random_state=0).fit(flat))
