"""Pipelines, and estimators that stand for the one inside of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import ModelDefinition
from .objectives import Objective, objective_of
from .scores import Scores, transformation
from .writer import ModelWriter

__all__ = ["IDLE", "PipelineDefinition"]

#: Steps that give what they take.
IDLE = (None, "passthrough")


class PipelineDefinition(ModelDefinition):
    """Pipeline: each step takes what the one before gives."""

    def children(self, model: Any) -> Iterator[Any]:
        """Yield the steps that do something."""
        yield from (step for _, step in model.steps if step not in IDLE)

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return the objective of the last step."""
        return objective_of(model.steps[-1][1], total_weight)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the steps."""
        scores: Scores | None = None
        steps = [(name, step) for name, step in model.steps if step not in IDLE]
        for name, step in steps:
            if scores is not None:
                if scores.transformed is None:
                    raise op.fail(model, f"the step before {name!r} does not transform.")
                x = scores.transformed
            scores = op.step(name, step, x, last=name == steps[-1][0])
        if scores is None:
            return transformation(op, x, model.n_features_in_)
        return scores
