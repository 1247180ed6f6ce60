"""Models for scikit-learn's checks, wrapped in both estimators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

__all__ = ["MODELS", "OPTIMIZERS", "checks_of", "estimators"]

OPTIMIZERS = {"one_graph": OrtGradientOptimizer, "two_calls": OrtGradientForwardBackwardOptimizer}
MODELS = {
    "LinearRegression": LinearRegression(),
    "Ridge": Ridge(),
    "LogisticRegression": LogisticRegression(),
    "SGDRegressor": SGDRegressor(),
    "SGDClassifier": SGDClassifier(),
    "MLPRegressor": MLPRegressor(hidden_layer_sizes=(8,)),
    "MLPClassifier": MLPClassifier(hidden_layer_sizes=(8,)),
    "MultiOutputRegressor": MultiOutputRegressor(Ridge()),
    "pipeline_Ridge": make_pipeline(StandardScaler(), Ridge()),
    "pipeline_LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression()),
}


def estimators() -> Iterator[tuple[str, str, Any]]:
    """Yield the name of the estimator, the name of the model, and the estimator."""
    for step, optimizer in OPTIMIZERS.items():
        for name, model in MODELS.items():
            # Adam, because data sets differ in scale by a factor of one hundred.
            yield step, name, optimizer(model, learning_rate="Adam", max_iter=5)


def checks_of(estimator: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, estimator and check of scikit-learn's checks."""
    for instance, check in estimator_checks_generator(estimator):
        yield check.func.__name__, instance, check
