"""Epoch graphs for several candidates, compiled once for all folds, stacks and rungs of a search."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, helper

from ..graphs import TensorType, copy_model, make_value_info
from ..graphs.editing import with_fields
from ..graphs.nodes import subgraphs
from ..runtime.buffers import Carried
from ..runtime.devices import Device
from ..runtime.sessions import make_session
from ..training.graphs.names import RATE
from ..training.graphs.task import TrainingTask
from ..training.optimisations.layouts import faster_layouts
from ..training.steps.batch_loops import ORDER, batches_per_iteration
from ..training.steps.compiled import structure_key
from ..training.steps.epoch_graph import REST, EpochGraph, epoch_graph
from ..transforms.batching import Aligned, NotBatchable, align, batched_model

__all__ = ["Family", "Sizes", "StackCompiler"]


class Sizes(NamedTuple):
    """Samples of a full batch and of the short last one, and number of full batches."""

    full: int
    rest: int
    n_batches: int

    @property
    def key(self) -> tuple[int, int, int]:
        """Sizes that the graph depends on."""
        return self.full, self.rest, batches_per_iteration(self.n_batches)


@dataclass(eq=False)
class Family:
    """Epoch graphs that differ in constants only, which are inputs of their common graph."""

    graph: EpochGraph  # of the first one
    keys: list[Hashable]
    aligned: Aligned
    sessions: dict[int, Any] = field(default_factory=dict)  # by number of leading axes
    batched: dict[int, ModelProto] = field(default_factory=dict)

    @property
    def carried(self) -> list[Carried]:
        """Weights and states."""
        return self.graph.carried

    def constants_of(self, key: Hashable) -> dict[str, np.ndarray]:
        """Return the constants of a graph."""
        number = self.keys.index(key)
        return {name: values[number] for name, values in self.aligned.constants.items()}


class StackCompiler:
    """Builds and caches the graphs of a search."""

    def __init__(self, device: Device, n_jobs: int | None):
        self.device, self.n_jobs = device, n_jobs
        self._graphs: dict[Hashable, EpochGraph] = {}
        self._families: list[Family] = []
        self._alive: list[Any] = []  # keys may contain the ids of these objects

    def key_of(self, task: TrainingTask, sizes: Sizes) -> tuple[Hashable, dict[str, np.ndarray]]:
        """Build the graph of a candidate; return its key, and the strengths of the penalty for its inputs."""
        task, strengths = task.with_strengths_as_inputs()
        own, values = structure_key(task)
        key = own, sizes.key
        if key not in self._graphs:
            self._alive.append(values)
            self._graphs[key] = epoch_graph(task, *sizes.key, faster_layouts, joins_intercepts=False)
        return key, strengths

    def families(self, keys: Sequence[Hashable], dtype: Any) -> list[tuple[Family, list[int]]]:
        """Return the families of graphs, and the numbers of their keys."""
        known = {key for family in self._families for key in family.keys}
        self._place([key for key in dict.fromkeys(keys) if key not in known], dtype)
        found: dict[int, tuple[Family, list[int]]] = {}
        for number, key in enumerate(keys):
            family = next(family for family in self._families if key in family.keys)
            found.setdefault(id(family), (family, []))[1].append(number)
        return list(found.values())

    def _place(self, keys: list[Hashable], dtype: Any) -> None:
        """Add graphs to the family that fits all of them, to a new one, or one by one."""
        if not keys:
            return
        for number, family in enumerate(self._families):
            joined = self._family([*family.keys, *keys], dtype)
            if joined is not None:
                self._families[number] = joined
                return
        own = self._family(keys, dtype)
        if own is not None:
            self._families.append(own)
            return
        for key in keys:
            self._place([key], dtype)

    def _family(self, keys: list[Hashable], dtype: Any) -> Family | None:
        """Return a family of graphs; None if they differ in more than constants."""
        graphs = [self._graphs[key] for key in keys]
        if len({tuple(item.transposed for item in graph.carried) for graph in graphs}) > 1:
            return None
        aligned = align([graph.model for graph in graphs], dtype)
        return None if aligned is None else Family(graphs[0], keys, aligned)

    def session(self, family: Family, n_axes: int) -> Any:
        """Return a session that trains candidates of a family for an epoch; None if an operator has no rule.

        Inputs and outputs are those of an :class:`EpochGraph` and the constants, with leading axes of any
        length unless shared: candidates, and before them, if there are two, orders of samples.
        """
        if n_axes not in family.sessions:
            family.sessions[n_axes] = None
            if not family.graph.draws:  # candidates would share random numbers
                with suppress(NotBatchable):
                    model = _batched(family, n_axes)
                    family.sessions[n_axes] = make_session(model, self.device, self.n_jobs)
        return family.sessions[n_axes]


def _batched(family: Family, n_axes: int) -> ModelProto:
    """Return the graph of a family with leading axes."""
    if n_axes in family.batched:
        return family.batched[n_axes]
    model = _with_inputs(family.aligned) if n_axes == 1 else _batched(family, 1)
    own = {RATE, *(item.source for item in family.carried)}
    own |= {*family.graph.strengths, *family.aligned.constants, *((ORDER, REST) if n_axes > 1 else ())}
    inputs = own & {value.name for value in model.graph.input}
    family.batched[n_axes] = batched_model(model, inputs, {}, "candidates" if n_axes == 1 else "orders")
    return family.batched[n_axes]


def _with_inputs(aligned: Aligned) -> ModelProto:
    """Return the common graph of a family, with its constants as inputs."""
    graph, constants = copy_model(aligned.model).graph, aligned.constants
    _drop(graph, constants.keys())
    added = [
        make_value_info(name, TensorType(helper.np_dtype_to_tensor_dtype(values.dtype), values.shape[1:]))
        for name, values in constants.items()
    ]
    return with_fields(
        aligned.model, node=graph.node, initializer=graph.initializer, input=[*graph.input, *added]
    )


def _drop(graph: GraphProto, names: Collection[str]) -> None:
    """Remove constants from a graph and from its loops, which read those of the outer graph."""
    kept = [tensor for tensor in graph.initializer if tensor.name not in names]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    for node in graph.node:
        for body in subgraphs(node):
            _drop(body, names)
