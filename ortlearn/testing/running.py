"""Run models for the checks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto, checker, shape_inference
from onnx.reference import ReferenceEvaluator

__all__ = ["Run", "check_graph", "run_reference"]

#: Function of a model and its inputs by name that returns the outputs.
Run = Callable[[ModelProto, dict[str, np.ndarray]], list]


def run_reference(model: ModelProto, feeds: dict[str, np.ndarray]) -> list:
    """Run a model with onnx's reference evaluator."""
    return list(ReferenceEvaluator(model).run(None, feeds))


def check_graph(name: str, model: ModelProto) -> None:
    """Check that a graph is valid, and that its outputs have the declared types."""
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise AssertionError(
            f"{name}: the graph is not valid ONNX, or its output does not have the declared shape or type. "
            f"{error}"
        ) from error
