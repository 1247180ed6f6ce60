"""Data, models and updates for searches, and the comparison with scikit-learn's."""

import numpy as np
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import (
    LearningRateAdam,
    LearningRateSGD,
    LearningRateSGDNesterov,
)
from ortlearn.search import OrtGridSearchCV

rng = np.random.default_rng(0)
X = rng.normal(size=(83, 5)).astype(np.float32)
scores = X @ rng.normal(size=(5, 3)) + rng.normal(size=(83, 3))
y, binary, classes = scores[:, 0].astype(np.float32), (scores[:, 0] > 0).astype(int), scores.argmax(axis=1)
weights = rng.uniform(0.5, 2.0, size=83)

UPDATES = {
    "SGD": LearningRateSGD(learning_rate="constant"),
    "Nesterov": LearningRateSGDNesterov(learning_rate="constant"),
    "Adam": LearningRateAdam(),
}
MODELS = {
    "ridge": (Ridge(), y),
    "binary": (LogisticRegression(), binary),
    "multinomial": (LogisticRegression(), classes),
    "network": (MLPRegressor(hidden_layer_sizes=(6, 4)), y),
    "classifier": (MLPClassifier(hidden_layer_sizes=(6,)), classes),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), binary),
}
RATES = {"learning_rate__eta0": [0.01, 0.03]}


def trainer(name="ridge", rate="SGD", penalty=None, **params):
    """Return an estimator whose last batch is short, and its labels."""
    model, labels = MODELS[name]
    rate = clone(UPDATES[rate]) if rate in list(UPDATES) else rate
    settings = {"max_iter": 4, "batch_size": 9, "random_state": 0, **params}
    return OrtGradientOptimizer(model, learning_rate=rate, learning_penalty=penalty, **settings), labels


class Recorder:
    """Scorer that records the fitted attributes of each estimator, without times."""

    def __init__(self):
        self.found = []

    def __call__(self, estimator, X, y, sample_weight=None):
        names = ("epoch", "loss", "rate")
        history = [[record[name] or 0.0 for name in names] for record in estimator.history_]
        arrays = [*estimator.get_weights().values(), np.array(history, dtype=float), estimator.predict(X)]
        self.found.append(arrays)
        return estimator.score(X, y, sample_weight)


def searched(search_class, estimator, grid, labels, fit_params=None, **params):
    recorder = Recorder()
    settings = {"cv": 2, "refit": False, "error_score": "raise", "scoring": recorder, **params}
    search = search_class(estimator, grid, **settings).fit(X, labels, **(fit_params or {}))
    return search, recorder.found


def assert_same_results(estimator, grid, labels, **params):
    """Compare weights, losses, predictions and scores with those of GridSearchCV."""
    search, together = searched(OrtGridSearchCV, estimator, grid, labels, **params)
    other, alone = searched(GridSearchCV, estimator, grid, labels, **params)
    assert len(together) == len(alone) > 0
    for arrays, expected in zip(together, alone, strict=True):
        for array, value in zip(arrays, expected, strict=True):
            assert array.dtype == value.dtype and array.shape == value.shape
            np.testing.assert_allclose(array, value, rtol=1e-5, atol=1e-5 * np.abs(value).max(initial=0.1))
    assert search.cv_results_.keys() == other.cv_results_.keys()
    assert search.cv_results_["params"] == other.cv_results_["params"]
    np.testing.assert_array_equal(search.cv_results_["rank_test_score"], other.cv_results_["rank_test_score"])
    return search


#: Each update with each penalty, and the models in turn: their operators have separate rules.
