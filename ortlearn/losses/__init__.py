"""Losses: each one a plugin that writes the loss of a sample as an ONNX expression."""

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
    "default_loss",
    "resolve_loss",
]
