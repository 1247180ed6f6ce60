"""Fixtures for the tests of model definitions."""

import numpy as np
import pytest

from ortlearn.graphs import extract_model
from ortlearn.models.transformations.pipelines import working_steps
from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import write_weights
from tests.plain_training import plain_training  # noqa: F401


@pytest.fixture(scope="session")
def run(run_onnx):
    """Return a function that runs a model on a dict of inputs, as `check_model` expects."""
    return lambda model, feeds: run_onnx(model, **feeds)


@pytest.fixture(scope="session")
def check_graph(run_onnx):
    """Return a function that compares a graph with scikit-learn, before and after its weights change."""

    def predict(trainable, weights, X):
        return run_onnx(trainable.with_weights(weights), **read_columns(X, trainable.entry.schema))[0]

    def check(model, X, *others, dtype=np.float64):
        # a fusion of onnxruntime 1.31 is 6e-9 off in float64
        tolerance = 1e-4 if dtype == np.float32 else 1e-8
        trainable = to_trainable(model, "*", X=X, dtype=dtype)  # without comparison of outputs
        assert trainable.entry.sklearn_steps is None
        weights = trainable.initial_weights()
        for samples in (X, *others):
            compare(predict(trainable, weights, samples), model.predict(samples), tolerance)
        changed = {name: (1.1 * array + 0.05).astype(array.dtype) for name, array in weights.items()}
        written = write_weights(model, trainable, trainable.coefficients(changed))
        for samples in (X, *others):
            compare(predict(trainable, changed, samples), written.predict(samples), 10 * tolerance)
        assert changed and all(trainable.origins().values())
        return trainable

    def compare(found, expected, tolerance):
        expected = np.asarray(expected)
        if expected.dtype.kind == "f":
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                found.reshape(expected.shape), expected, rtol=0, atol=tolerance * scale
            )
        else:
            np.testing.assert_array_equal(found.reshape(expected.shape), expected)

    return check


@pytest.fixture(scope="session")
def check_transformers(run_onnx):
    """Return a function that compares features of documents with those that training uses."""

    def check(model, trainable, documents):
        found = trainable.transformers_of(model)
        assert list(found.values())[-1].steps == working_steps(model)[:-1]
        feeds = read_columns(documents, trainable.entry.schema)
        for tensor, steps in found.items():
            (computed,) = run_onnx(extract_model(trainable.model, [tensor]), **feeds)
            np.testing.assert_allclose(computed, steps.transform(documents).toarray(), rtol=1e-5, atol=1e-6)

    return check
