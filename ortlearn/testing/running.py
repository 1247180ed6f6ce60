"""Run models for the checkers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto, checker, shape_inference
from onnx.reference import ReferenceEvaluator

__all__ = ["Run", "check_graph", "run_reference"]

#: Takes a model and its inputs by name, returns its outputs.
Run = Callable[[ModelProto, dict[str, np.ndarray]], list]


def run_reference(model: ModelProto, feeds: dict[str, np.ndarray]) -> list:
    """Run a model by onnx's reference evaluator."""
    return list(ReferenceEvaluator(model).run(None, feeds))


def check_graph(name: str, model: ModelProto) -> None:
    """Check that a plugin writes a valid graph, and that its results have the declared types."""
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise AssertionError(
            f"{name}: what it writes is not valid ONNX, or its result has another shape or type than it "
            f"must have. {error}"
        ) from error
