"""Smaller models that keep their accuracy: ``distill``, ``quantize`` and ``prune``."""

from .quantisation import quantize
from .results import Compressed

__all__ = ["Compressed", "quantize"]
