"""A batch as two calls: forward, then loss, backward and update."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from ...data.samples import Data
from ...graphs.nodes import all_nodes
from ...runtime.calls import saved_tensors
from ..graphs.step_graphs import StepGraph
from .base_step import BaseStep
from .batch_step import Plan, Tensors
from .compiled import compiled_graph
from .engines import DYNAMIC_SHAPE_OPERATORS
from .two_call_graphs import two_call_graphs

__all__ = ["two_calls"]


def two_calls(step: BaseStep, size: int | str) -> Plan | None:
    """Return two calls per batch; None if shapes of tensors between the calls depend on values."""
    task, device, n_jobs = step.task, step.device, step.threads(size)

    def opened(size: int | str, part: int, build: Callable[[], Any]) -> tuple[StepGraph, Any]:
        key = size, "call", part
        return compiled_graph(task, key, device, n_jobs, lambda: build()[part], spins=False)

    @cache
    def compiled(size: int | str) -> list[tuple[StepGraph, Any]]:
        """Return graphs and sessions of both calls, and of what depends on the rate, for a size."""
        build = cache(partial(two_call_graphs, task, size))
        return [opened(size, part, build) for part in range(3)]

    def sessions(size: int) -> list[Any]:
        return [session for _, session in compiled(size)[::2]]

    def of_rate(size: int) -> list[Any]:
        return [compiled(size)[1][1]]

    def saved(size: int, data: Data, values: Tensors) -> Tensors:
        """Return the tensors between the calls."""
        parts = [sessions(size)[0], *of_rate(size)]
        return {k: v for part in parts for k, v in saved_tensors(part, values, device).items()}

    forward, rate, backward = (graph for graph, _ in compiled(size))
    if any(node.op_type in DYNAMIC_SHAPE_OPERATORS for node in all_nodes(forward.model.graph)):
        return None
    models = {"rate": rate.model, "forward": forward.model, "backward": backward.model}
    return Plan(models, backward.carried, sessions, saved, of_rate=of_rate)
