"""Compiled graphs kept for the next training of the same structure in this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import numpy as np

from ..differentiation.registry import registered_rules
from ..exceptions import GradientError
from ..graphs import copy_model
from .devices import Device
from .forks import guard
from .runtime import not_implemented
from .sessions import make_session
from .task import TrainingTask

__all__ = ["cached_session", "clear_cache", "structure_key"]

#: How many graphs are kept.
MAX_GRAPHS = 32

_CACHE: OrderedDict[Hashable, tuple[Any, Any, list[Any]]] = OrderedDict()
_LOCK = Lock()
guard(_LOCK, _CACHE.clear)


def cached_session(
    task: TrainingTask,
    sizes: Hashable,
    device: Device,
    n_jobs: int | None,
    build: Callable[[], Any],
    spins: bool = True,
) -> tuple[Any, Any]:
    """Return a graph and a session on it, built once for tasks that need the same.

    Weights, data and rates are inputs of the graph, so that a search over rates or the folds of a
    cross-validation find it ready.
    """
    own, values = structure_key(task)
    key = (own, sizes, device, n_jobs, registered_rules())
    with _LOCK:
        if key in _CACHE:
            _CACHE.move_to_end(key)
            return _CACHE[key][:2]
    graph = build()
    try:
        entry = graph, make_session(graph.model, device, n_jobs, spins=spins)
    except not_implemented() as error:
        text = str(error).rpartition(" : ")[2]
        if "Grad(" not in text:  # an operator of the model: rules have it too
            raise
        raise GradientError(
            f"onnxruntime cannot run the training in {task.graph.dtype}: {text}. Use gradient='rules', whose "
            "operators are standard ones."
        ) from error
    with _LOCK:
        # Values are kept alive: the key may hold the address of one. Of two threads, the first wins.
        found = _CACHE.setdefault(key, (*entry, values))
        while len(_CACHE) > MAX_GRAPHS:
            _CACHE.popitem(last=False)
    return found[:2]


def structure_key(task: TrainingTask) -> tuple[Hashable, list[Any]]:
    """Return what the graphs of a task depend on, and values that must live as long as it is used."""
    used = (task.objective.loss, task.objective.penalty, task.update.learning_rate)
    plugins = [plugin for plugin in used if plugin is not None]
    values = [value for plugin in plugins for _, value in sorted(plugin.get_params().items())]
    # What numpy prints of an array leaves out most of a long one.
    arrays = tuple((a.dtype.str, a.shape, a.tobytes()) for a in values if isinstance(a, np.ndarray))
    unnamed = copy_model(task.graph.model)
    unnamed.graph.name = ""  # converters draw one at random
    return (task.changed(model=unnamed).graph_key(), arrays), values


def clear_cache() -> None:
    """Forget every compiled graph."""
    with _LOCK:
        _CACHE.clear()
