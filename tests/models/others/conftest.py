"""Fixtures for estimators of other packages."""

import pickle

import numpy as np
import pytest
from onnx import TensorProto
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

from ortlearn import OrtGradientOptimizer
from ortlearn.graphs import TensorType, extract_model
from ortlearn.models import write_model


class Samples:
    """Samples of four features, some with missing values, and labels of several kinds."""

    def __init__(self):
        rng = np.random.RandomState(0)
        self.X = rng.normal(size=(200, 4)).astype(np.float32).astype(np.float64)
        self.y = self.X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=200) + 5.0
        self.missing = np.where(rng.uniform(size=self.X.shape) < 0.1, np.nan, self.X)
        self.positive = np.exp(self.y / 4)
        self.shares = 1 / (1 + np.exp(5 - self.y))
        self.two = (self.y > 5).astype(int)
        self.three = np.digitize(self.y, [4.0, 6.0])
        self.categories = np.column_stack(
            [np.round(self.X[:, 0] * 2) ** 2, self.X[:, 1:], rng.randint(0, 30, size=200)]
        )
        self.of_categories = self.categories[:, 0] % 3 + self.categories[:, 4] % 5 + self.X[:, 1]


@pytest.fixture(scope="session")
def samples():
    """Samples and labels."""
    return Samples()


@pytest.fixture
def retrain():
    """Return a function that trains a fitted estimator, checks the result and returns the optimizer."""

    def train(model, X, y, atol=1e-5, **params):
        params = {"learning_rate": "Adam", "max_iter": 10, "keep_better": False, "random_state": 0} | params
        trainer = OrtGradientOptimizer(model, warm_start=True, **params)
        assert clone(trainer).get_params().keys() == trainer.get_params().keys()
        trained = pickle.loads(pickle.dumps(trainer.fit(X, y)))
        assert trained.train_losses_[-1] < trained.train_losses_[0]
        back = pickle.loads(pickle.dumps(trained.to_sklearn()))
        assert type(back) is type(model)
        method = "predict_proba" if is_classifier(model) else "predict"
        ours, theirs, before = (getattr(own, method)(X) for own in (trained, back, model))
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, atol=atol * scale)
        assert np.abs(ours - before).max() > 10 * atol * scale
        return trained

    return train


@pytest.fixture
def scores_of(run):
    """Return a function that computes the scores in the loss of a fitted estimator."""

    def scores(model, X):
        written = write_model(model, {"X": TensorType(TensorProto.DOUBLE, (None, X.shape[1]))}, np.float64)
        return run(extract_model(written.model, [written.scores.score]), {"X": X})[0]

    return scores


@pytest.fixture
def search():
    """Return a function that returns the best parameters of a grid search."""

    def find(model, X, y, **grid):
        trainer = OrtGradientOptimizer(
            model, learning_rate="Adam", max_iter=2, keep_better=False, random_state=0, warm_start=False
        )
        names = {f"estimator__{name}": values for name, values in grid.items()}
        found = GridSearchCV(trainer, names, cv=2).fit(X, y).best_params_
        return {name.removeprefix("estimator__"): value for name, value in found.items()}

    return find
