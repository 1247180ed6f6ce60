"""Estimators that stand for the one inside of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import ModelDefinition
from .scores import Scores
from .writer import ModelWriter

__all__ = ["FrozenDefinition", "InnerDefinition", "SearchDefinition"]


class InnerDefinition(ModelDefinition):
    """Estimators that compute what ``estimator_`` does: RANSACRegressor."""

    attribute = "estimator_"
    takes_columns = True

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


class FrozenDefinition(InnerDefinition):
    """FrozenEstimator: nothing in it is trained unless somebody names it."""

    attribute = "estimator"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the estimator inside."""
        with op.held("it is part of a FrozenEstimator"):
            return super().write(op, model, x)
