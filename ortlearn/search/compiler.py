"""Epoch graphs for several candidates, compiled once for all folds of a search."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ..runtime.buffers import Carried
from ..runtime.devices import Device
from ..runtime.sessions import make_session
from ..training.graphs.names import RATE
from ..training.graphs.task import TrainingTask
from ..training.steps.batch_loops import ORDER, batches_per_iteration
from ..training.steps.compiled import structure_key
from ..training.steps.epoch_graph import REST, EpochGraph, epoch_graph
from ..transforms.batching import Aligned, NotBatchable, align, batched_model

__all__ = ["CompiledStack", "Sizes", "StackCompiler"]


@dataclass(frozen=True)
class Sizes:
    """Samples of a full batch and of the short last one, and number of full batches."""

    full: int
    rest: int
    n_batches: int

    @property
    def key(self) -> tuple[int, int, int]:
        """Sizes that the graph depends on."""
        return self.full, self.rest, batches_per_iteration(self.n_batches)


@dataclass(frozen=True)
class CompiledStack:
    """A session that trains several candidates for an epoch.

    Inputs and outputs are those of an :class:`EpochGraph`, with leading axes of candidates unless shared.
    """

    session: Any
    carried: list[Carried]


class StackCompiler:
    """Builds and caches the graphs of a search."""

    def __init__(self, device: Device, n_jobs: int | None):
        self.device, self.n_jobs = device, n_jobs
        self._graphs: dict[Hashable, EpochGraph] = {}
        self._aligned: dict[Hashable, Aligned | None] = {}
        self._compiled: dict[Hashable, CompiledStack | None] = {}
        self._alive: list[Any] = []  # keys may contain the ids of these objects

    def _graph(self, task: TrainingTask, sizes: Sizes) -> Hashable:
        """Build the graph of a candidate and return its key."""
        own, values = structure_key(task)
        key = own, sizes.key
        if key not in self._graphs:
            self._alive.append(values)
            self._graphs[key] = epoch_graph(task, *sizes.key, layout=None)
        return key

    def _aligned_graphs(self, keys: tuple[Hashable, ...], task: TrainingTask) -> Aligned | None:
        if keys not in self._aligned:
            self._aligned[keys] = align([self._graphs[key].model for key in keys], task.graph.dtype)
        return self._aligned[keys]

    def groups(self, tasks: Sequence[TrainingTask], sizes: Sizes) -> list[list[int]]:
        """Return groups of indices of tasks whose graphs differ only in constants."""
        groups: dict[Hashable, list[int]] = {}
        for number, task in enumerate(tasks):
            key = self._graph(task, sizes)
            matching = (first for first in groups if key == first or self._aligned_graphs((first, key), task))
            groups.setdefault(next(matching, key), []).append(number)
        return list(groups.values())

    def have_same_graphs(
        self, tasks: Sequence[TrainingTask], others: Sequence[TrainingTask], sizes: Sizes
    ) -> bool:
        """Return whether two lists of tasks have the same graphs, including constants."""
        return [self._graph(task, sizes) for task in tasks] == [self._graph(task, sizes) for task in others]

    def compiled(
        self, tasks: Sequence[TrainingTask], sizes: Sizes, leading: tuple[int, ...], n_orders: int
    ) -> CompiledStack | None:
        """Return a session that trains the candidates of one group; None if an operator has no rule."""
        keys = [self._graph(task, sizes) for task in tasks]
        key = tuple(keys), leading, n_orders
        if key not in self._compiled:
            self._compiled[key] = self._build(keys, tasks[0], leading, n_orders)
        return self._compiled[key]

    def _build(
        self, keys: list[Hashable], task: TrainingTask, leading: tuple[int, ...], n_orders: int
    ) -> CompiledStack | None:
        distinct = tuple(dict.fromkeys(keys))
        aligned, first = self._aligned_graphs(distinct, task), self._graphs[distinct[0]]
        if aligned is None or first.draws:  # candidates would share random numbers
            return None
        numbers = [distinct.index(key) for key in keys]
        constants = {name: values[numbers] for name, values in aligned.constants.items()}
        names = {value.name for value in aligned.model.graph.input}
        own = {RATE, *(item.source for item in first.carried)} & names
        orders = {ORDER, REST} & names if n_orders > 1 else set()
        inner = own if len(leading) > 1 else own | orders
        try:
            model = batched_model(aligned.model, inner, constants, leading[-1])
            if len(leading) > 1:  # batched over the candidates with one order, then over the orders
                model = batched_model(model, own | orders, {}, leading[0])
        except NotBatchable:
            return None
        return CompiledStack(make_session(model, self.device, self.n_jobs), first.carried)
