"""The loss that a name, a class, an object or a function stands for."""

from __future__ import annotations

from typing import Any

from .. import plugins
from .base import BaseLoss
from .function import FunctionLoss

__all__ = ["resolve_loss"]


def resolve_loss(spec: Any, **params: Any) -> BaseLoss:
    """Return the loss a user asked for: a name, a class, an object or a Python function.

    Parameters
    ----------
    spec : str, type, BaseLoss or callable
        Loss; a function is one of :class:`~ortlearn.losses.FunctionLoss`.
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
