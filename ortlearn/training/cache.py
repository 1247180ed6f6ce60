"""Cache of compiled graphs, shared by trainings of the same structure in this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import numpy as np

from ..differentiation.registry import registered_rules
from ..graphs import copy_model
from .devices import Device
from .forks import acquire_before_fork
from .sessions import make_session
from .task import TrainingTask

__all__ = ["cached_session", "clear_cache", "structure_key"]

#: Maximum number of graphs.
MAX_GRAPHS = 32

_CACHE: OrderedDict[Hashable, tuple[Any, Any, list[Any]]] = OrderedDict()
_LOCK = Lock()
acquire_before_fork(_LOCK, _CACHE.clear)


def cached_session(
    task: TrainingTask,
    sizes: Hashable,
    device: Device,
    n_jobs: int | None,
    build: Callable[[], Any],
    spins: bool = True,
) -> tuple[Any, Any]:
    """Return a graph and its session, built once for all tasks of the same structure.

    Weights, data and learning rates are inputs of the graph, so that a search over rates or the folds of a
    cross-validation share it.
    """
    own, values = structure_key(task)
    key = (own, sizes, device, n_jobs, registered_rules())
    with _LOCK:
        if key in _CACHE:
            _CACHE.move_to_end(key)
            return _CACHE[key][:2]
    graph = build()
    entry = graph, make_session(graph.model, device, n_jobs, spins=spins)
    with _LOCK:
        # Values are kept alive since the key may contain the id of one. The first of two threads wins.
        found = _CACHE.setdefault(key, (*entry, values))
        while len(_CACHE) > MAX_GRAPHS:
            _CACHE.popitem(last=False)
    return found[:2]


def structure_key(task: TrainingTask) -> tuple[Hashable, list[Any]]:
    """Return a key of the graphs of a task, and objects that must stay alive while it is used."""
    used = (task.objective.loss, task.objective.penalty, task.update.learning_rate)
    plugins = [plugin for plugin in used if plugin is not None]
    values = [value for plugin in plugins for _, value in sorted(plugin.get_params().items())]
    # repr abbreviates long arrays
    arrays = tuple((a.dtype.str, a.shape, a.tobytes()) for a in values if isinstance(a, np.ndarray))
    unnamed = copy_model(task.graph.model)
    unnamed.graph.name = ""  # random in some converters
    return (task.changed(model=unnamed).graph_key(), arrays), values


def clear_cache() -> None:
    """Remove all compiled graphs."""
    with _LOCK:
        _CACHE.clear()
