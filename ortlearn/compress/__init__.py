"""Smaller models that keep their accuracy: ``distill``, ``quantize`` and ``prune``."""

from .distillation import distill
from .pruning import prune
from .quantisation import quantize
from .results import Compressed

__all__ = ["Compressed", "distill", "prune", "quantize"]
