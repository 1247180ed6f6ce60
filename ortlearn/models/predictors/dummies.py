"""Dummy estimators, which ignore the features."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import losses
from ..base import ModelDefinition, Objective
from ..constraints.sets import Simplex
from ..forms import Reshaped
from ..scores import Scores, classification, multioutput, regression
from ..writer import ModelWriter

#: Losses minimised by the strategies of DummyRegressor (Koenker, R. and Bassett, G., "Regression quantiles",
#: Econometrica 46 (1978), 33-50, for the last two).
STRATEGIES: dict[str, Callable[[Any], losses.BaseLoss]] = {
    "mean": lambda model: losses.SquaredErrorLoss(),
    "median": lambda model: losses.AbsoluteErrorLoss(),
    "quantile": lambda model: losses.QuantileLoss(float(model.quantile)),
}


class DummyRegressorDefinition(ModelDefinition):
    """DummyRegressor: a constant for each output."""

    takes_columns = True
    flexible = False

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        loss = STRATEGIES.get(model.strategy)
        return None if loss is None else Objective(loss(model))

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        constant = op.parameter(model, "constant_", form=Reshaped((-1,)), role="intercept")
        return regression(op, op.repeated_row(x, constant), model.n_outputs_)


class DummyClassifierDefinition(ModelDefinition):
    """DummyClassifier: one class, or the class shares, which minimise the log loss (Bishop, 2006, 2.35)."""

    takes_columns = True
    flexible = False
    loss = losses.LogLoss

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        if model.strategy in ("stratified", "uniform"):
            raise op.fail(model, f"strategy={model.strategy!r} is random: set strategy='prior'.")
        if model.n_outputs_ == 1:
            prior, shares = self._shares(op, model, x, model.classes_)
            score = op.log_probabilities(prior)
            return classification(op, score, "softmax", shares, model.classes_, probabilities=shares)
        parts = [self._shares(op, model, x, classes, i) for i, classes in enumerate(model.classes_)]
        priors, predictions = zip(*parts, strict=True)
        return multioutput(op, predictions, model.classes_, scored=priors)

    def _shares(
        self, op: ModelWriter, model: Any, x: Any, classes: np.ndarray, output: int | None = None
    ) -> tuple[str, str]:
        """Append the prior and the predicted probabilities of the classes of an output."""
        reason = "predictions do not depend on it" if model.strategy == "constant" else ""
        options: Any = {"index": output, "role": "intercept", "constraint": Simplex(), "reason": reason}
        prior = op.repeated_row(x, op.parameter(model, "class_prior_", **options))
        if model.strategy == "prior":
            return prior, prior
        if model.strategy == "most_frequent":
            return prior, op.one_hot(op.ArgMax(prior, axis=1, keepdims=1), len(classes))
        constant = np.ravel(model.constant)[output or 0]
        chosen = op.constant((np.asarray(classes) == constant).astype(op.float_dtype))
        return prior, op.repeated_row(x, chosen)
