"""Selectors of columns."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .base import ModelDefinition
from .scores import Scores, transformation
from .writer import ModelWriter


class SelectorDefinition(ModelDefinition):
    """Selectors: the columns of ``get_support()``."""

    untrained = "it picks columns: which ones is no number to train"

    def covers(self, model: Any) -> bool:
        return bool(model.get_support().any())

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        support = model.get_support()
        chosen = np.flatnonzero(support)
        return transformation(op, op.columns(x, chosen, len(support)), len(chosen))


class RecursiveSelectorDefinition(SelectorDefinition):
    """RFE and RFECV: they predict by the estimator that was fitted on the columns they select."""

    def children(self, model: Any) -> Iterator[Any]:
        yield model.estimator_

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        columns = super().write(op, model, x).score
        with op.inside(reason="it is part of a selector, which is not trained"):
            scores = op.write(model.estimator_, columns, "estimator_")
        return replace(scores, transformed=columns)
