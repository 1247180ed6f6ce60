"""Estimators that stand for the one inside of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import ModelDefinition
from .objectives import Objective, objective_of
from .scores import Scores
from .writer import ModelWriter

__all__ = [
    "FrozenDefinition",
    "InnerDefinition",
    "SearchDefinition",
    "TransformedTargetDefinition",
    "UnwrappedDefinition",
]


class InnerDefinition(ModelDefinition):
    """Estimators that compute what ``estimator_`` does: RANSACRegressor, which leaves samples out."""

    attribute = "estimator_"

    def children(self, model: Any) -> Iterator[Any]:
        """Yield the estimator inside."""
        yield getattr(model, self.attribute)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the estimator inside."""
        return op.write(getattr(model, self.attribute), x, self.attribute)


class SearchDefinition(InnerDefinition):
    """Searches over hyper-parameters, once they have refitted the best estimator."""

    attribute = "best_estimator_"

    def covers(self, model: Any) -> bool:
        """Return whether there is a best estimator."""
        return hasattr(model, "best_estimator_")

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return the objective of the best estimator."""
        return objective_of(model.best_estimator_, total_weight) if self.covers(model) else None


class FrozenDefinition(InnerDefinition):
    """FrozenEstimator: nothing in it is trained unless somebody names it."""

    attribute = "estimator"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the estimator inside."""
        with op.held("it is part of a FrozenEstimator"):
            return super().write(op, model, x)


class UnwrappedDefinition(ModelDefinition):
    """Estimators that decide by the scores of ``estimator_``, which are trained without them: thresholds."""

    attribute = "estimator_"

    def covers(self, model: Any) -> bool:
        """Return False: the estimator inside is converted, and what they add follows."""
        return False

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return the objective of the estimator inside."""
        return objective_of(getattr(model, self.attribute), total_weight)


class TransformedTargetDefinition(UnwrappedDefinition):
    """TransformedTargetRegressor: the objective is that of the transformed targets."""

    attribute = "regressor_"
