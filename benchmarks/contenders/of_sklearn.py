"""scikit-learn's estimators, and models with given weights."""

from __future__ import annotations

import copy
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.cases import Case, Weights, initial_weights
from benchmarks.contenders.base import Contender

__all__ = ["Linear", "Perceptron", "model_with", "perceptron"]

#: Samples that are enough to set an estimator up.
FEW = 2_000


def perceptron(case: Case, epochs: int, shuffle: bool):
    """Return a perceptron of scikit-learn with the parameters of a case."""
    kind = MLPRegressor if case.task == "regression" else MLPClassifier
    return kind(
        hidden_layer_sizes=case.layers[1:-1],
        solver="sgd",
        learning_rate_init=case.rate,
        momentum=case.momentum,
        nesterovs_momentum=False,
        batch_size=case.batch_size,
        alpha=0.0,
        max_iter=epochs,
        shuffle=shuffle,
        n_iter_no_change=10**9,
        tol=0.0,
        random_state=0,
    )


def quietly(model, X: np.ndarray, y: np.ndarray):
    """Fit without the ConvergenceWarning of the last epoch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def model_with(case: Case, X: np.ndarray, y: np.ndarray):
    """Return a fitted scikit-learn model that has a case's initial weights."""
    weights = initial_weights(case)
    if len(case.layers) > 2:
        few = min(len(X), max(FEW, case.batch_size))
        model = perceptron(case, 1, shuffle=False).set_params(batch_size=min(few, case.batch_size))
        model = quietly(model, X[:few], y[:few])
        model.coefs_ = [coefs.copy() for coefs, _ in weights]
        model.intercepts_ = [intercept.copy() for _, intercept in weights]
        return model
    model = LinearRegression() if case.task == "regression" else LogisticRegression(max_iter=1)
    model = quietly(model, X[:FEW], y[:FEW])
    ((coefs, intercept),) = weights
    flat = case.task == "regression"
    model.coef_ = coefs[:, 0].copy() if flat else coefs.T.copy()
    model.intercept_ = np.float32(intercept[0]) if flat else intercept.copy()
    return model


class Perceptron(Contender):
    """MLPRegressor and MLPClassifier, from given weights."""

    @staticmethod
    def supports(case: Case) -> bool:
        """Return whether there is a hidden layer."""
        return len(case.layers) > 2

    def setup(self) -> None:
        """Create the estimator from which a fit continues."""
        self.start = model_with(self.case, self.X, self.y)

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train."""
        model = copy.deepcopy(self.start)
        model.set_params(max_iter=epochs, shuffle=shuffle, warm_start=True, batch_size=self.case.batch_size)
        quietly(model, self.X, self.y)
        return list(zip(model.coefs_, model.intercepts_, strict=True))

    def default_fit(self) -> Weights:
        """Train for a hundred epochs."""
        return self.fit(100, shuffle=True)


class Linear(Contender):
    """SGDRegressor and SGDClassifier: an update after every sample."""

    same_updates = False

    @staticmethod
    def supports(case: Case) -> bool:
        """Return whether there is no hidden layer, and one output."""
        return len(case.layers) == 2 and case.layers[-1] == 1

    def _model(self, **parameters):
        parameters = {"penalty": None, "random_state": 0, **parameters}
        if self.case.task == "regression":
            return SGDRegressor(**parameters)
        return SGDClassifier(loss="log_loss", n_jobs=self.threads, **parameters)

    def _fit(self, model) -> Weights:
        quietly(model, self.X, self.y)
        return [(model.coef_.reshape(-1, 1), np.ravel(model.intercept_))]

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train at a constant rate."""
        constant = {"learning_rate": "constant", "eta0": self.case.rate / self.case.batch_size}
        return self._fit(self._model(max_iter=epochs, tol=None, shuffle=shuffle, **constant))

    def default_fit(self) -> Weights:
        """Train with its own schedule until it stops itself."""
        return self._fit(self._model())
