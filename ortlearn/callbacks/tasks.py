"""Helpers for the tasks that scikit-learn passes to callbacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["check_trainer", "is_round", "run_name"]

#: Names of the tasks inside a training: epochs, or iterations of a solver.
ROUNDS = ("epoch", "iteration")


def check_trainer(callback: Any, estimator: Any) -> None:
    """Raise an error if an estimator does not train by gradient."""
    if not hasattr(type(estimator), "get_trained_onnx"):
        name, kind = type(callback).__name__, type(estimator).__name__
        raise TypeError(
            f"{name} supports OrtGradientOptimizer and OrtGradientForwardBackwardOptimizer, not {kind}. Call "
            f"set_callbacks of the trainer inside it, before creating {kind}."
        )


def is_round(context: Any) -> bool:
    """Return whether a task is an epoch, or an iteration of a solver."""
    return context.task_name in ROUNDS


def _lineage(context: Any) -> Iterator[Any]:
    while context is not None:
        yield context
        context = context.parent


def run_name(context: Any) -> tuple[str, ...]:
    """Return the names of the enclosing tasks of a call of ``fit``, valid as folder names."""
    inner = list(_lineage(context))[-2::-1]
    names = [f"{task.source_task_name or task.task_name}-{task.task_id}" for task in inner]
    return tuple(re.sub(r"[^\w.-]+", "_", name) for name in names)
