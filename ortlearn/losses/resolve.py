"""Resolve a name, a class, an object or a function to a loss."""

from __future__ import annotations

from typing import Any

from .. import plugins
from .base import BaseLoss
from .function import PREFIX, ExpressionLoss, FunctionLoss
from .wrappers import RowObjective

__all__ = ["default_loss", "resolve_loss"]

#: Default losses by task, for models whose loss is unknown.
DEFAULTS = {
    "regression": "squared_error",
    "classification": "log_loss",
    "multilabel": "log_loss",
    "unsupervised": RowObjective,
}


def default_loss(task: str) -> BaseLoss:
    """Return the default loss of a task, for models whose own loss is unknown."""
    return resolve_loss(DEFAULTS[task])


def resolve_loss(spec: Any, **params: Any) -> BaseLoss:
    """Return a new loss from a name, a class, an object, a Python function or the text of an expression."""
    if isinstance(spec, str) and spec.strip().startswith(PREFIX):
        spec, params = ExpressionLoss(spec.strip().removeprefix(PREFIX).strip(), **params), {}
    if callable(spec) and not isinstance(spec, type | BaseLoss):
        return FunctionLoss(spec, **params)
    loss = plugins.create(plugins.LOSSES, spec, BaseLoss, **params)
    loss.check()
    return loss
