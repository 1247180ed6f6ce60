"""Batched graphs: one ONNX graph that computes what several of the same structure do."""

from .alignment import Aligned, align
from .scope import NotBatchable
from .transform import batched_model

__all__ = ["Aligned", "NotBatchable", "align", "batched_model"]
