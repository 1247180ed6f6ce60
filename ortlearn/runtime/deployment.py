"""Sessions as a program opens a file: with all optimizations of onnxruntime."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from .devices import Device
from .onnxruntime_module import runtime
from .sessions import make_session

__all__ = ["deployed_session", "optimized_operators"]


def deployed_session(model: ModelProto, path: str = "") -> Any:
    """Return a session with all optimizations, on one thread; it may write the optimized graph."""
    ort = runtime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.optimized_model_filepath = path
    return make_session(model, Device("cpu"), options=options)


def optimized_operators(model: ModelProto) -> Counter[str]:
    """Return the operators that onnxruntime runs for a file, after its optimizations, and their numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimized.onnx"
        deployed_session(model, str(path))
        return Counter(node.op_type for node in onnx.load(path).graph.node)
