"""Resolve a name, a class, an object or a function to a loss."""

from __future__ import annotations

from typing import Any

from .. import plugins
from .base import BaseLoss
from .function import FunctionLoss
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
    """Return the default loss for a model whose own loss is unknown.

    Parameters
    ----------
    task : {"regression", "classification", "multilabel", "unsupervised"}
        Task of the model.

    Returns
    -------
    BaseLoss
        New object.

    Examples
    --------
    >>> from ortlearn.losses import default_loss
    >>> default_loss("classification")
    LogLoss()
    """
    return resolve_loss(DEFAULTS[task])


def resolve_loss(spec: Any, **params: Any) -> BaseLoss:
    """Return the loss a user asked for: a name, a class, an object or a Python function.

    Parameters
    ----------
    spec : str, type, BaseLoss or callable
        Loss; a function becomes a :class:`~ortlearn.losses.FunctionLoss`.
    **params
        Parameters of its constructor, for a name or a class.

    Returns
    -------
    BaseLoss
        New object.

    Raises
    ------
    PluginError
        If it is not one of these, or unknown, or if a parameter is invalid.

    Examples
    --------
    >>> from ortlearn.losses import resolve_loss
    >>> resolve_loss("elastic", l1_weight=0.1)
    ElasticLoss(l1_weight=0.1)
    """
    if callable(spec) and not isinstance(spec, type | BaseLoss):
        return FunctionLoss(spec, **params)
    loss = plugins.create(plugins.LOSSES, spec, BaseLoss, **params)
    loss.check()
    return loss
