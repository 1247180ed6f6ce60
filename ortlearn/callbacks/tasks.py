"""Helpers for the tasks that scikit-learn passes to callbacks."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from importlib import import_module
from numbers import Real
from typing import Any

__all__ = ["call_key", "check_trainer", "imported", "is_round", "numbers_of", "run_name"]

#: Names of the tasks inside a training: epochs, or iterations of a solver.
ROUNDS = ("epoch", "iteration")
#: Columns of the history that are logged.
METRICS = ("loss", "validation_loss", "validation_score", "rate", "seconds")


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


def call_key(context: Any) -> Hashable:
    """Return what identifies a call of ``fit`` among all calls."""
    return context.root_uuid, run_name(context)


def numbers_of(record: dict[str, Any]) -> dict[str, float]:
    """Return the numbers in the record of an epoch."""
    found = {name: record.get(name) for name in METRICS}
    return {name: float(value) for name, value in found.items() if isinstance(value, Real)}


def imported(module: str, extra: str, callback: Any) -> Any:
    """Return a module of an optional package, or raise an ImportError that names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        name = type(callback).__name__
        raise ImportError(f"{name} needs another package: pip install 'ortlearn[{extra}]'.") from error
