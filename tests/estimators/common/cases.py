"""All estimators with all installed losses and learning rates, and small data sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier

from ortlearn import plugins
from ortlearn.losses import QuantilesLoss

from .models import OPTIMIZERS

__all__ = ["Case", "all_cases"]

#: A model for each task; the first task of a loss in this order is used.
MODELS: dict[str, Any] = {
    "regression": LinearRegression(),
    "classification": LogisticRegression(),
    "multilabel": MLPClassifier(hidden_layer_sizes=(3,)),
}
N_SAMPLES = 13


def _installed(group: str) -> dict[str, type]:
    """Return the plugin classes of a group by one name each."""
    found: dict[type, str] = {}
    for info in plugins.list_plugins(group):
        found.setdefault(plugins.get(group, info.name), info.name)
    return {name: plugin for plugin, name in found.items()}


#: All but the loss whose labels have a column per level, which is tested with intervals.
LOSSES = {name: loss for name, loss in _installed(plugins.LOSSES).items() if loss is not QuantilesLoss}
LEARNING_RATES = _installed(plugins.LEARNING_RATES)


@dataclass(frozen=True)
class Case:
    """Estimator with a loss and a learning rate."""

    step: str
    loss: str
    rate: str

    def __str__(self) -> str:
        return f"{self.step}-{self.loss}-{self.rate}"

    @property
    def task(self) -> str:
        """First task of the loss."""
        tasks = LOSSES[self.loss].tasks
        return next(task for task in MODELS if task in tasks)

    @property
    def is_classifier(self) -> bool:
        return self.task == "classification"

    @property
    def supports_several_outputs(self) -> bool:
        """Whether y may have several columns."""
        return self.task == "regression" or "multilabel" in LOSSES[self.loss].tasks

    @property
    def supports_partial_fit(self) -> bool:
        """Whether ``partial_fit`` is supported."""
        return not LEARNING_RATES[self.rate].full_batch

    def estimator(self, task: str | None = None, **params: Any) -> Any:
        """Return an unfitted estimator for a task, by default the first one of the loss."""
        params = {
            "learning_loss": self.loss,
            "learning_rate": self.rate,
            "max_iter": 2,
            "batch_size": 4,
            "random_state": 0,
            **params,
        }
        return OPTIMIZERS[self.step](MODELS[task or self.task], **params)

    @cached_property
    def X(self) -> np.ndarray:
        """Small integers of shape (13, 3), as floats."""
        return np.random.RandomState(0).randint(-2, 3, size=(N_SAMPLES, 3)).astype(np.float64)

    @cached_property
    def y(self) -> np.ndarray:
        """Labels of shape (13,): values in the domain of the loss, or three classes."""
        if self.task == "regression":
            return self._values(self.X[:, 0] - self.X[:, 1])
        return np.arange(N_SAMPLES) % (3 if self.is_classifier else 2)

    @cached_property
    def several(self) -> np.ndarray:
        """Labels of shape (13, 2)."""
        if self.task == "regression":
            return np.stack([self.y, self._values(self.X[:, 2])], axis=1)
        return np.stack([self.X[:, 0] > 0, self.X[:, 1] > 0], axis=1).astype(np.int64)

    def _values(self, values: np.ndarray) -> np.ndarray:
        """Return values shifted into the domain of the loss."""
        domain = LOSSES[self.loss]().domain
        low, high = domain.low, domain.high
        shares = 0.1 + 0.8 * (values - values.min()) / np.ptp(values)
        if np.isfinite(low) and np.isfinite(high):
            return low + shares * (high - low)
        if np.isfinite(low):
            return low + shares
        return high - shares if np.isfinite(high) else values


def all_cases() -> list[Case]:
    """Return the product of estimators, losses and learning rates."""
    return [Case(*names) for names in product(OPTIMIZERS, LOSSES, LEARNING_RATES)]
