"""Linear models that are fitted sample by sample: what they minimise.

``sum(w * l) / n + alpha * R``, with ``R = |coef|_1`` for the penalty ``"l1"``, ``|coef|^2 / 2`` for ``"l2"``,
and ``ratio * |coef|_1 + (1 - ratio) / 2 * |coef|^2`` for ``"elasticnet"`` (User guide of scikit-learn,
"Stochastic Gradient Descent"). As n is the number of samples, rather than the sum of their weights, the
objectives here are theirs for weights of mean one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..losses import (
    BaseLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogLoss,
    ModifiedHuberLoss,
    PerceptronLoss,
    SignedLabelLoss,
    SquaredEpsilonInsensitiveLoss,
    SquaredErrorLoss,
    SquaredHingeLoss,
)
from ..penalties import BasePenalty, NoPenalty
from .linear import LinearClassifierDefinition, LinearRegressorDefinition
from .objectives import Objective, elastic

#: One epoch at a rate next to nothing, so that unscaled data cannot make it diverge.
ONE_EPOCH = {"max_iter": 1, "tol": None, "early_stopping": False, "learning_rate": "constant", "eta0": 1e-12}
REGRESSION: dict[str, Callable[[Any], BaseLoss]] = {
    "squared_error": lambda model: SquaredErrorLoss(),
    "huber": lambda model: HuberLoss(delta=float(model.epsilon)),
    "epsilon_insensitive": lambda model: EpsilonInsensitiveLoss(epsilon=float(model.epsilon)),
    "squared_epsilon_insensitive": lambda model: SquaredEpsilonInsensitiveLoss(epsilon=float(model.epsilon)),
}
CLASSIFICATION: dict[str, type[BaseLoss]] = {
    "hinge": HingeLoss,
    "log_loss": LogLoss,
    "modified_huber": ModifiedHuberLoss,
    "perceptron": PerceptronLoss,
    "squared_hinge": SquaredHingeLoss,
}


def _penalty(model: Any) -> BasePenalty:
    if model.penalty is None:
        return NoPenalty()
    ratio = {"l1": 1.0, "l2": 0.0, "elasticnet": float(model.l1_ratio or 0.0)}[model.penalty]
    return elastic(model.alpha * ratio, model.alpha * (1 - ratio) / 2)


class StochasticRegressorDefinition(LinearRegressorDefinition):
    """SGDRegressor."""

    shape_parameters: Mapping[str, Any] | None = ONE_EPOCH

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        return Objective(REGRESSION[model.loss](model), _penalty(model))


class StochasticClassifierDefinition(LinearClassifierDefinition):
    """SGDClassifier and Perceptron; several classes are one against the rest."""

    shape_parameters: Mapping[str, Any] | None = ONE_EPOCH

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        if model.loss in REGRESSION:  # on labels -1 and 1
            return Objective(SignedLabelLoss(REGRESSION[model.loss](model)), _penalty(model))
        return Objective(CLASSIFICATION[model.loss](), _penalty(model))


class PassiveAggressiveRegressorDefinition(StochasticRegressorDefinition):
    """PassiveAggressiveRegressor.

    Each step is ``argmin |v - coef|^2 / 2 + C * l``, a proximal step on the loss of a sample, or on its
    square (Crammer et al., "Online passive-aggressive algorithms", JMLR 7 (2006), section 4): ``C`` is the
    length of the step, and there is no penalty.
    """

    shape_parameters = {}


class PassiveAggressiveClassifierDefinition(StochasticClassifierDefinition):
    """PassiveAggressiveClassifier: proximal steps on the hinge loss, or on its square."""

    shape_parameters = {}
