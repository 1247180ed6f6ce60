"""Gradients of ONNX graphs, by built-in rules or by the C++ builder of onnxruntime-training.

``BACKENDS`` has the values of the parameters ``gradient`` and ``backend``; ``STRAIGHT_THROUGH`` is the
backend of the built-in rules that differentiates rounding as the identity. ``onnx_derivative`` opens files:
it is defined in :mod:`ortlearn.onnx_files`, above this package, and imported when it is first used.
"""

from __future__ import annotations

import pkgutil
from typing import Any

from .backends import (
    BACKENDS,
    STRAIGHT_THROUGH,
    build_gradient,
    check_straight_through,
    gradient_of_loss,
)
from .decomposition import by_decomposition
from .derivative import DerivativeOptions
from .gradient_model import gradient_model
from .random_feed import random_feed
from .reach import gradient_reach, require_gradients
from .registry import declare_without_gradient, gradient_rule

__all__ = [
    "BACKENDS",
    "STRAIGHT_THROUGH",
    "DerivativeOptions",
    "build_gradient",
    "by_decomposition",
    "check_straight_through",
    "declare_without_gradient",
    "gradient_model",
    "gradient_of_loss",
    "gradient_reach",
    "gradient_rule",
    "onnx_derivative",
    "random_feed",
    "require_gradients",
]


def __getattr__(name: str) -> Any:
    if name != "onnx_derivative":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = pkgutil.resolve_name("ortlearn.onnx_files.derivative:onnx_derivative")
    return value
