"""Penalties: each one a plugin that writes the penalty of a weight as an ONNX expression."""

from .base import BasePenalty
from .elastic import ElasticPenalty
from .group_lasso import GroupLassoPenalty
from .l1 import L1Penalty
from .l2 import L2Penalty
from .max_norm import MaxNormPenalty
from .none import NoPenalty
from .penalty_graph import penalty_loss_onnx
from .per_weight import PerWeightPenalty
from .resolve import resolve_penalty

__all__ = [
    "BasePenalty",
    "ElasticPenalty",
    "GroupLassoPenalty",
    "L1Penalty",
    "L2Penalty",
    "MaxNormPenalty",
    "NoPenalty",
    "PerWeightPenalty",
    "penalty_loss_onnx",
    "resolve_penalty",
]
