"""Losses: each one a plugin that writes the loss of a row as an ONNX expression."""

from .absolute_error import AbsoluteErrorLoss
from .base import BaseLoss
from .elastic import ElasticLoss
from .log_loss import LogLoss
from .loss_graph import add_loss_output, resolve_loss
from .per_output import PerOutputLoss
from .row_objective import RowObjective
from .squared_error import SquaredErrorLoss

__all__ = [
    "AbsoluteErrorLoss",
    "BaseLoss",
    "ElasticLoss",
    "LogLoss",
    "PerOutputLoss",
    "RowObjective",
    "SquaredErrorLoss",
    "add_loss_output",
    "resolve_loss",
]
