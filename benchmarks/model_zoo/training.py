"""Trainings of a case: the selected weights, their initial values, and a few steps."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import numpy as np
from onnx import ModelProto

from ortlearn.data.samples import Data
from ortlearn.estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import OrtlearnError
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.training.graphs.names import OBJECTIVE
from ortlearn.training.graphs.objective import objective_graph
from ortlearn.training.graphs.task import TrainingTask
from ortlearn.training.steps.base_step import BaseStep

__all__ = ["Prepared", "messages", "perturbed", "prepare", "with_own_weights", "train_from"]

#: A rate that does not change any weight.
NO_RATE = 1e-30
#: Relative perturbations of weights.
DISTANCES = (0.2, 0.05, 0.01)


class _Stopped(Exception):
    """Raised instead of training, with task, samples and weights."""


@dataclass(frozen=True)
class Prepared:
    """A training to measure.

    Attributes
    ----------
    task : TrainingTask
        Graph, loss and weights, without the frozen part.
    data : Data
        Samples.
    weights : dict of str to ndarray
        Initial weights.
    messages : list of str
        Warnings of ortlearn.
    """

    task: TrainingTask
    data: Data
    weights: dict[str, np.ndarray]
    messages: list[str]

    @property
    def objective(self) -> ModelProto:
        """Graph of the objective."""
        return objective_graph(self.task)

    @property
    def output(self) -> str:
        """Output of that graph."""
        return OBJECTIVE

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """Inputs of the graph other than the weights."""
        return self.task.columns(self.data)


class _Stop(BaseStep):
    def build(self):
        return []

    def start(self, data, sizes, weights, *_):
        raise _Stopped(self.task, data, weights)


#: Parameters of a plain training from the weights of the model.
PLAIN = {
    "warm_start": True,
    "learning_rate": "SGD",
    "learning_penalty": None,
    "class_weight": None,
    "keep_better": False,
}


class _StoppedOptimizer(OrtGradientOptimizer):
    _step_class = _Stop


def prepare(model: Any, X: Any, y: Any) -> Prepared:
    """Return the training of a warm start, without running it.

    Raises
    ------
    OrtlearnError, ValueError
        If the model cannot be trained; with the message for the user.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _StoppedOptimizer(model, gradient="rules", shuffle=False, **PLAIN).fit(X, y)
        except _Stopped as prepared:
            task, data, weights = prepared.args
            return Prepared(task, data, weights, messages(caught))
    raise OrtlearnError("The estimator did not use its step.")


def messages(caught: list) -> list[str]:
    """Return the warnings that come from ortlearn."""
    ours = [item for item in caught if "ortlearn" in f"{item.category.__module__} {item.filename}"]
    return [f"{item.category.__name__}: {item.message}" for item in ours]


def perturbed(weights: dict[str, np.ndarray], distance: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Return perturbed weights: each changes by a share of its magnitude and keeps its sign.

    Zeros change by a share of the mean magnitude of their weight.
    """
    rng = np.random.default_rng(seed)
    moved = {}
    for name, array in weights.items():
        mean = float(np.sqrt(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0
        own = array * rng.uniform(-1, 1, size=array.shape)
        other = (mean or 1.0) * rng.uniform(-1, 1, size=array.shape) * (array == 0)
        moved[name] = np.asarray(array + distance * (own + other), dtype=array.dtype)
    return moved


def with_own_weights(model: Any, X: Any, y: Any) -> OrtGradientOptimizer:
    """Return an estimator of a fitted model with unchanged weights."""
    options = {**PLAIN, "learning_rate": LearningRateSGD(eta0=NO_RATE, learning_rate="constant")}
    return OrtGradientOptimizer(model, max_iter=1, batch_size=_n_samples(X), shuffle=False, **options).fit(
        X, y
    )


def train_from(
    model: Any,
    X: Any,
    y: Any,
    weights: dict[str, np.ndarray],
    rate: float,
    epochs: int,
    gradient: str,
    two_calls: bool = False,
) -> OrtGradientOptimizer | OrtGradientForwardBackwardOptimizer:
    """Return an estimator of a fitted model after a few steps on all samples, from given weights."""
    kind: type = OrtGradientForwardBackwardOptimizer if two_calls else OrtGradientOptimizer

    class Step(resolve_name(kind._step_path)):
        def start(self, data, sizes, _, *others):
            return super().start(data, sizes, weights, *others)

    class Optimizer(kind):
        _step_class = Step

    options = {**PLAIN, "learning_rate": LearningRateSGD(eta0=rate, learning_rate="constant")}
    return Optimizer(
        model, max_iter=epochs, batch_size=_n_samples(X), shuffle=False, gradient=gradient, **options
    ).fit(X, y)


def _n_samples(X: Any) -> int:
    return int(np.shape(X)[0])
