"""Compiled graphs of training tasks, shared by tasks of the same structure."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...differentiation.registry import registered_rules
from ...graphs import copy_model
from ...runtime.cache import cached_session
from ...runtime.devices import Device
from ..graphs.task import TrainingTask

__all__ = ["compiled_graph", "structure_key"]


def compiled_graph(
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
    return cached_session((own, sizes, registered_rules()), device, n_jobs, build, spins, values)


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
