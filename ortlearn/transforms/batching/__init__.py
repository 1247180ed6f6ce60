"""Batched graphs: one ONNX graph for several candidates of the same structure."""

from .alignment import Aligned, align
from .scope import NotBatchable
from .transform import batched_model

__all__ = ["Aligned", "NotBatchable", "align", "batched_model"]
