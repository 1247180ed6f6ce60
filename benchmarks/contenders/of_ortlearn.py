"""The two estimators of ortlearn."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Weights
from benchmarks.contenders.base import Contender
from benchmarks.contenders.of_sklearn import model_with
from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD, LearningRateSGDNesterov

__all__ = ["ForwardBackward", "SingleGraph"]


class SingleGraph(Contender):
    """OrtGradientOptimizer, from a fitted scikit-learn model."""

    estimator: Any = OrtGradientOptimizer

    def setup(self) -> None:
        """Make the model that is converted; the conversion itself is part of a fit."""
        self.model = model_with(self.case, self.X, self.y)

    def _rate(self):
        if self.case.momentum:
            return LearningRateSGDNesterov(
                self.case.rate, learning_rate="constant", momentum=self.case.momentum, nesterov=False
            )
        return LearningRateSGD(self.case.rate, learning_rate="constant")

    def fit(self, epochs: int, shuffle: bool) -> Weights:
        """Train."""
        trainer = self.estimator(
            self.model,
            learning_rate=self._rate(),
            batch_size=self.case.batch_size,
            max_iter=epochs,
            shuffle=shuffle,
            warm_start=True,
            learning_penalty=None,
            keep_better=False,
            n_jobs=self.threads,
            random_state=0,
        )
        trainer.fit(self.X, self.y)
        arrays = [trainer.trained_coef_[name] for name in trainer.weights_to_train_]
        pairs = zip(arrays[::2], arrays[1::2], strict=True)
        return [(coefs, intercept.reshape(-1)) for coefs, intercept in pairs]


class ForwardBackward(SingleGraph):
    """OrtGradientForwardBackwardOptimizer."""

    estimator = OrtGradientForwardBackwardOptimizer
