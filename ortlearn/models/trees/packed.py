"""Small trees by tables of packed comparisons: no branch depends on a sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import TensorProto

from ...graphs import GraphBuilder
from ..fusion import FusedForm, FusedGraph
from .nodes import FusedTrees

__all__ = ["LevelTrees", "PackedTrees", "by_levels", "for_many", "samples_from", "samples_of_levels"]

#: Numbers of samples after which a graph with one key per tree, or several, has gained the time to write it.
ONE_KEY, MORE_KEYS = 512, 2**14
#: Nodes that onnxruntime takes about 20 ms to read, and nodes that it reads while levels lose a sample.
READ_SLOWLY, NODES_PER_SAMPLE = 20_000, 20
#: Bits of a key: one key per tree has up to ``MOST`` bits, several have ``BITS``.
MOST, BITS = 8, 5
#: Fewest trees, and most columns of the table of leaves.
TREES, COLUMNS = 20, 8
#: Most nodes of a tree on average.
NODES = 100
#: Nanoseconds per tree and sample: of a split of TreeEnsemble, of a comparison, of its bit of a key, and of a
#: table. The form is used if it takes at most ``SHARE`` of the time.
SPLIT, COMPARISON, BIT, TABLE, SHARE = 6.0, 0.3, 0.21, 1.2, 0.75


def for_many(forms: Iterable[FusedForm], n_threads: int) -> list[FusedForm]:
    """Return forms for many samples."""
    return [_packed(form, n_threads) if isinstance(form, FusedTrees) else form for form in forms]


def samples_from(forms: Iterable[FusedForm], n_threads: int) -> float:
    """Return the number of samples from which the forms for many pay; infinite if they are the same."""
    keys = [form.keys for form in for_many(forms, n_threads) if isinstance(form, PackedTrees)]
    return np.inf if not keys else ONE_KEY if max(keys) == 1 else MORE_KEYS


def by_levels(forms: Iterable[FusedForm]) -> list[FusedForm]:
    """Return forms that keep the levels of the graph, whose session opens in a tenth of the time."""
    return [_with(LevelTrees, form) if isinstance(form, FusedTrees) else form for form in forms]


def samples_of_levels(forms: Iterable[FusedForm]) -> int:
    """Return the number of samples until which levels take less time than to open the operator's session."""
    n_nodes = sum(len(form.nodes.is_leaf) for form in forms if isinstance(form, FusedTrees))
    return n_nodes // NODES_PER_SAMPLE if n_nodes > READ_SLOWLY else 0


def _with(kind: type[TabledTrees], form: FusedTrees) -> Any:
    return kind(**{name: getattr(form, name) for name in form.__dataclass_fields__})


def _packed(form: FusedTrees, n_threads: int) -> FusedTrees:
    """Return the form with tables if they are faster."""
    n_trees, is_leaf = len(form.nodes.sizes), form.nodes.is_leaf
    if not form.sums or n_trees < TREES or is_leaf.all() or len(is_leaf) > NODES * n_trees:
        return form
    found: PackedTrees = _with(PackedTrees, form)
    is_slow = n_threads > 1 or form.nodes.threshold.dtype != np.float32  # with many operators
    if found.keys == 1 or (not is_slow and found.cost <= SHARE):
        return found
    return form


@dataclass(frozen=True)
class TabledTrees(FusedTrees):
    """Trees whose leaves are looked up in tables, and added tree by tree, as the operator does."""

    def _picked(self, op: GraphBuilder, values: np.ndarray) -> list[str]:
        """Append the value of each reached leaf in each column, of shape (n_trees, n)."""
        raise NotImplementedError

    def _write_sums(self, op: GraphBuilder, values: np.ndarray, base: Any) -> None:
        shape, n_trees = values.shape[1:] or (self.n_scores,), len(self.nodes.sizes)
        if np.prod(values.shape[1:]) > COLUMNS:
            super()._write_sums(op, values, base)
            return
        values = values.reshape(len(values), -1).astype(self.nodes.threshold.dtype)
        sums = []
        for found in self._picked(op, values):
            if self.n_scores > 1:
                found = op.Reshape(found, [n_trees // self.n_scores, self.n_scores, -1])
            sums.append(op.ReduceSum(found, [0], keepdims=int(self.n_scores == 1)))
        total = op.Transpose(op.Concat(*sums, axis=0) if len(sums) > 1 else sums[0], perm=[1, 0])
        if self.base:
            total = op.Add(total, base.astype(values.dtype))
        total = op.Cast(total, to=TensorProto.FLOAT) if values.dtype != np.float32 else total
        op.node("Reshape", total, [-1, *shape], outputs=[self.sums])


@dataclass(frozen=True)
class LevelTrees(TabledTrees):
    """Trees whose leaves the levels of the graph reach."""

    def apply(self, graph: FusedGraph) -> None:
        if graph.computes(self.sums) and graph.computes(self.numbers):
            self._replace_sums(graph)

    def _picked(self, op: GraphBuilder, values: np.ndarray) -> list[str]:
        numbers = op.Reshape(op.Transpose(self.numbers, perm=[1, 0]), [-1])
        shape = [len(self.nodes.sizes), -1]
        return [op.Reshape(op.GatherElements(own, numbers, axis=0), shape) for own in values.T]


@dataclass(frozen=True)
class PackedTrees(TabledTrees):
    """Trees as automata: comparisons of a tree, level by level, are the index of the next state in a table.

    Of all states, only those that samples can reach are in the tables; the last one has the values of leaves.
    """

    @cached_property
    def slots(self) -> np.ndarray:
        """Number of each split in its tree, level by level; -1 for leaves."""
        nodes, slots = self.nodes, np.full(len(self.nodes.is_leaf), -1)
        left, right = nodes.children
        level, begin = nodes.roots, np.zeros(len(nodes.sizes), dtype=np.int64)
        while len(level := level[~nodes.is_leaf[level]]):
            tree = nodes.trees[level]
            order = np.argsort(tree, kind="stable")
            level, tree = level[order], tree[order]
            slots[level] = begin[tree] + np.arange(len(level)) - np.searchsorted(tree, tree)
            begin += np.bincount(tree, minlength=len(begin))
            level = np.concatenate([left[level], right[level]])
        return slots

    @cached_property
    def keys(self) -> int:
        """Number of keys of a tree."""
        splits = int(self.slots.max()) + 1
        return 1 if splits <= MOST else -(-splits // BITS)

    @cached_property
    def bits(self) -> int:
        """Number of comparisons of a key."""
        return max(1, -(-(int(self.slots.max()) + 1) // self.keys))

    @cached_property
    def comparisons(self) -> tuple[np.ndarray, np.ndarray]:
        """Different comparisons: the positions of a split of each, and the number of that of each split.

        Those of splits that send missing values left are last and reversed: no comparison with NaN is true.
        """
        nodes, splits = self.nodes, np.flatnonzero(self.slots >= 0)
        columns = nodes.feature[splits] + (nodes.feature.max() + 1) * nodes.missing_left[splits]
        order = np.lexsort((nodes.threshold[splits], columns))
        ordered = columns[order], nodes.threshold[splits][order]
        is_new = np.append(True, np.logical_or(*(own[1:] != own[:-1] for own in ordered)))
        numbers = np.empty(len(splits), dtype=np.int64)
        numbers[order] = np.cumsum(is_new) - 1
        return splits[order[is_new]], numbers

    @property
    def cost(self) -> float:
        """Approximate time, relative to that of TreeEnsemble."""
        nodes, n_bits = self.nodes, self.keys * self.bits
        compared = len(self.comparisons[0]) / len(nodes.sizes)
        own = COMPARISON * compared + BIT * n_bits + TABLE * (self.keys + 1)
        return own / (SPLIT * np.log2(np.mean(nodes.sizes) + 1))

    def _picked(self, op: GraphBuilder, values: np.ndarray) -> list[str]:
        index, leaves = self._walk(op)
        return [op.GatherElements(column[leaves], index, axis=1) for column in values.T]

    def _walk(self, op: GraphBuilder) -> tuple[str, np.ndarray]:
        """Append the index of the reached leaf of each tree in a table, which is returned, too."""
        nodes, (left, right) = self.nodes, self.nodes.children
        n_trees, width = len(nodes.sizes), 1 << self.bits
        split_of = np.full((n_trees, self.keys * self.bits), -1)
        splits = np.flatnonzero(self.slots >= 0)
        split_of[nodes.trees[splits], self.slots[splits]] = splits
        all_keys, states, state = op.MatMulInteger(self._weights(), self._bits(op)), nodes.roots[:, None], ""
        for group in range(self.keys):
            key = op.Gather(all_keys, group, axis=1)
            index = op.Add(state, key) if state else key
            reached = np.repeat(states[:, :, None], width, axis=2)  # node of each state and key
            for bit in range(self.bits):  # parents first
                split = split_of[:, group * self.bits + bit, None]
                goes_left = (np.arange(width) >> bit & 1) != nodes.missing_left[split]
                child = np.where(goes_left, left[split], right[split])
                np.copyto(reached, child[:, None], where=reached == split[:, None])
            if group < self.keys - 1:
                numbers, states = self._numbered(reached)
                state = op.GatherElements((numbers * width).reshape(n_trees, -1), index, axis=1)
        return index, (np.cumsum(nodes.is_leaf) - 1)[reached.reshape(n_trees, -1)]

    def _numbered(self, reached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of nodes among those of their tree that occur, and these, by tree."""
        occurs = np.zeros(len(self.nodes.is_leaf), dtype=bool)
        occurs[reached] = True
        found = np.flatnonzero(occurs)
        tree = self.nodes.trees[found]
        own = np.arange(len(found)) - np.searchsorted(tree, tree)
        states = np.repeat(self.nodes.roots[:, None], own.max() + 1, axis=1)
        states[tree, own] = found
        numbers = np.zeros(len(occurs), dtype=np.int32)
        numbers[found] = own
        return numbers[reached], states

    def _weights(self) -> np.ndarray:
        """Return powers of two, by which comparisons become keys, of shape (n_trees, keys, keys * bits)."""
        weights = np.zeros((self.keys, self.keys, self.bits), dtype=np.uint8)
        weights[range(self.keys), range(self.keys)] = 1 << np.arange(self.bits)
        return np.tile(weights.reshape(1, self.keys, -1), (len(self.nodes.sizes), 1, 1))

    def _bits(self, op: GraphBuilder) -> str:
        """Append the comparisons of each tree, of shape (n_trees, keys * bits, n), uint8."""
        nodes, (splits, numbers) = self.nodes, self.comparisons
        x, compared = op.Transpose(self.samples, perm=[1, 0]), []
        for is_reversed, compare in ((False, op.LessOrEqual), (True, op.Greater)):
            own = splits[nodes.missing_left[splits] == is_reversed]
            if len(own):
                columns, limits = nodes.feature[own], nodes.threshold[own][:, None]
                compared.append(compare(op.Gather(x, columns, axis=0), limits))
        every = op.Concat(*compared, axis=0) if len(compared) > 1 else compared[0]
        place, own = np.zeros((len(nodes.sizes), self.keys * self.bits), dtype=np.int64), self.slots >= 0
        place[nodes.trees[own], self.slots[own]] = numbers
        return op.Gather(op.Cast(every, to=TensorProto.UINT8), place, axis=0)
