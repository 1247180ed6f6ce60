"""Steps of pipelines, and the comparison of a graph with its pipeline."""

import numpy as np
import pandas as pd
from onnx import checker
from sklearn.base import BaseEstimator, TransformerMixin

from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.trainable.conversion import to_trainable
from tests.preprocessing.graph_runs import run

N_SAMPLES = 120
CITIES = ["Oslo", "Lima", "Rome"]


class Squares(TransformerMixin, BaseEstimator):
    """A transformer without fitted attributes."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) ** 2


class Names(TransformerMixin, BaseEstimator):
    """A transformer that returns a frame with text."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        side = np.where(np.asarray(X)[:, 0] > 0, "right", "left")
        return pd.DataFrame({"side": side, "far": np.abs(np.asarray(X)[:, 1])})


class Mine(BaseEstimator):
    """An estimator without a definition."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.zeros(len(X))


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def check(fitted, X, dtype=np.float32):
    """Check that a graph predicts like its estimator, and return the trainable model."""
    trainable = to_trainable(fitted, X=X, dtype=dtype, run=run)
    model = trainable.with_weights(trainable.initial_weights())
    checker.check_model(model)
    samples = X if trainable.entry.sklearn_steps is None else trainable.entry.sklearn_steps.transform(X)
    got = run(model, read_columns(dense(samples), trainable.entry.schema)).ravel()
    np.testing.assert_allclose(got, fitted.predict(X), rtol=1e-4, atol=1e-5)
    return trainable


def product(a, b):
    """A kernel of a user."""
    return float(a @ b) ** 2
