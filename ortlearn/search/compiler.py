"""Graphs of an epoch for several candidates at once, compiled once for all folds of a search."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ..training import Device, TrainingTask, make_session
from ..training.batch_loops import ORDER, is_long
from ..training.cache import structure_key
from ..training.epoch_graph import REST, EpochGraph, epoch_graph
from ..training.step_graphs import RATE, Carried
from .batching import Aligned, NotBatchable, align, batched_model

__all__ = ["CompiledStack", "Sizes", "StackCompiler"]


@dataclass(frozen=True)
class Sizes:
    """Samples of a full batch and of the last short one, and number of the full ones."""

    full: int
    rest: int
    n_batches: int

    @property
    def key(self) -> tuple[int, int, bool]:
        """What a graph depends on."""
        return self.full, self.rest, is_long(self.n_batches)


@dataclass(frozen=True)
class CompiledStack:
    """A session that trains several candidates for an epoch.

    Attributes
    ----------
    session : onnxruntime.InferenceSession
        Session. Its inputs and outputs are those of an :class:`EpochGraph`, with a leading axis of
        candidates for all that they do not share.
    carried : list of Carried
        Weights and states.
    """

    session: Any
    carried: list[Carried]


class StackCompiler:
    """Builds and keeps the graphs of a search.

    Parameters
    ----------
    device : Device
        Where they run.
    n_jobs : int or None
        Threads of an operator.
    """

    def __init__(self, device: Device, n_jobs: int | None):
        self.device, self.n_jobs = device, n_jobs
        self._graphs: dict[Hashable, EpochGraph] = {}
        self._aligned: dict[Hashable, Aligned | None] = {}
        self._compiled: dict[Hashable, CompiledStack | None] = {}
        self._alive: list[Any] = []  # keys may hold addresses of these

    def _graph(self, task: TrainingTask, sizes: Sizes) -> Hashable:
        """Build the graph of a candidate, and return its key."""
        own, values = structure_key(task)
        key = own, sizes.key
        if key not in self._graphs:
            self._alive.append(values)
            self._graphs[key] = epoch_graph(task, *sizes.key)
        return key

    def _align(self, keys: tuple[Hashable, ...], task: TrainingTask) -> Aligned | None:
        if keys not in self._aligned:
            self._aligned[keys] = align([self._graphs[key].model for key in keys], task.graph.dtype)
        return self._aligned[keys]

    def groups(self, tasks: Sequence[TrainingTask], sizes: Sizes) -> list[list[int]]:
        """Return the numbers of the tasks whose graphs differ in nothing but constants.

        Parameters
        ----------
        tasks : sequence of TrainingTask
            What is trained.
        sizes : Sizes
            Batches.

        Returns
        -------
        list of list of int
            Groups.
        """
        groups: dict[Hashable, list[int]] = {}
        for number, task in enumerate(tasks):
            key = self._graph(task, sizes)
            alike = (first for first in groups if key == first or self._align((first, key), task))
            groups.setdefault(next(alike, key), []).append(number)
        return list(groups.values())

    def compiled(
        self, tasks: Sequence[TrainingTask], sizes: Sizes, shared_order: bool
    ) -> CompiledStack | None:
        """Return a session that trains the candidates of one group; None where an operator has no rule.

        Parameters
        ----------
        tasks : sequence of TrainingTask
            Candidates.
        sizes : Sizes
            Batches.
        shared_order : bool
            Whether all of them visit the samples in the same order.

        Returns
        -------
        CompiledStack or None
            Session.
        """
        keys = [self._graph(task, sizes) for task in tasks]
        key = tuple(keys), shared_order
        if key not in self._compiled:
            self._compiled[key] = self._build(keys, tasks[0], shared_order)
        return self._compiled[key]

    def _build(self, keys: list[Hashable], task: TrainingTask, shared_order: bool) -> CompiledStack | None:
        distinct = tuple(dict.fromkeys(keys))
        aligned, first = self._align(distinct, task), self._graphs[distinct[0]]
        if aligned is None or first.draws:  # numbers drawn in a shared part would be the same for all
            return None
        numbers = [distinct.index(key) for key in keys]
        constants = {name: values[numbers] for name, values in aligned.constants.items()}
        names = {value.name for value in aligned.model.graph.input}
        own = {RATE, *(item.source for item in first.carried)} | (set() if shared_order else {ORDER, REST})
        try:
            model = batched_model(aligned.model, own & names, constants, len(keys))
        except NotBatchable:
            return None
        return CompiledStack(make_session(model, self.device, self.n_jobs), first.carried)
