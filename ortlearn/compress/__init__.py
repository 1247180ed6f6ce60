"""Smaller models that keep their accuracy: ``distill`` and ``quantize``."""

from .distillation import distill
from .quantisation import quantize
from .results import Compressed

__all__ = ["Compressed", "distill", "quantize"]
