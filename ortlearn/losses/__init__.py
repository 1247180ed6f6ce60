"""Losses: each one a plugin that writes the loss of a sample as an ONNX expression.

``as_objective`` differentiates losses: it is defined in :mod:`ortlearn.boosting`, above this package, and
imported when it is first used.
"""

from __future__ import annotations

import pkgutil
from typing import Any

from .absolute_error import AbsoluteErrorLoss
from .base import BaseLoss
from .cross_entropy import CrossEntropyLoss
from .deviances import GammaLoss, PoissonLoss, TweedieLoss
from .elastic import ElasticLoss
from .epsilon_insensitive import EpsilonInsensitiveLoss, SquaredEpsilonInsensitiveLoss
from .focal import FocalLoss
from .function import ExpressionLoss, FunctionLoss
from .huber import HuberLoss
from .interval import Interval
from .log_loss import LogLoss
from .loss_graph import add_loss_output
from .margins import HingeLoss, ModifiedHuberLoss, PerceptronLoss, SquaredHingeLoss
from .quantile import QuantileLoss, QuantilesLoss
from .resolve import default_loss, resolve_loss
from .signed_labels import SignedLabelLoss
from .squared_error import SquaredErrorLoss
from .wrappers import PerOutputLoss, PerPositionLoss, RowObjective

__all__ = [
    "AbsoluteErrorLoss",
    "BaseLoss",
    "CrossEntropyLoss",
    "ElasticLoss",
    "EpsilonInsensitiveLoss",
    "ExpressionLoss",
    "FocalLoss",
    "FunctionLoss",
    "GammaLoss",
    "HingeLoss",
    "HuberLoss",
    "Interval",
    "LogLoss",
    "ModifiedHuberLoss",
    "PerOutputLoss",
    "PerPositionLoss",
    "PerceptronLoss",
    "PoissonLoss",
    "QuantileLoss",
    "QuantilesLoss",
    "RowObjective",
    "SignedLabelLoss",
    "SquaredEpsilonInsensitiveLoss",
    "SquaredErrorLoss",
    "SquaredHingeLoss",
    "TweedieLoss",
    "add_loss_output",
    "as_objective",
    "default_loss",
    "resolve_loss",
]


def __getattr__(name: str) -> Any:
    if name != "as_objective":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = pkgutil.resolve_name("ortlearn.boosting.objectives:as_objective")
    return value
