"""How the checkers run a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

__all__ = ["Run", "run_reference"]

#: Takes a model and its inputs by name, returns its outputs.
Run = Callable[[ModelProto, dict[str, np.ndarray]], list]


def run_reference(model: ModelProto, feeds: dict[str, np.ndarray]) -> list:
    """Run a model by onnx's reference evaluator."""
    return list(ReferenceEvaluator(model).run(None, feeds))
