"""An order of samples in which neighbours take the same branches of trees, which processors predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ...graphs import GraphBuilder, extract_model, graph_names, opset_versions
from ...graphs.editing import append_nodes
from ..fusion import FusedForm
from .nodes import FusedTrees, Nodes

__all__ = ["KEY", "OrderedTrees", "order_graph", "ordered"]

#: Name of the output with the keys of samples.
KEY = "ortlearn_order"
#: Fewest leaves of a tree on average, and levels of all trees, for which the order pays.
LEAVES, LEVELS = 64, 300
#: Largest number of keys, which are float32.
KEYS = 2**24


def order_graph(model: ModelProto, form: FusedTrees) -> ModelProto | None:
    """Return a graph of the leaves that samples reach in the largest trees; None for few or small trees.

    ``model`` computes the samples that the trees of ``form`` read.
    """
    part = extract_model(model, [form.samples])
    op = GraphBuilder(opset_versions(part)[""], existing_names=graph_names(part.graph))
    if not _write_keys(op, form, KEY):
        return None
    return append_nodes(part, op, outputs=[helper.make_tensor_value_info(KEY, TensorProto.FLOAT, [None, 1])])


def ordered(forms: Iterable[FusedForm]) -> list[FusedForm]:
    """Return forms with large trees that order their samples in the graph."""
    return [_ordered(form) if type(form) is FusedTrees and form.sums else form for form in forms]


def _ordered(form: FusedTrees) -> FusedTrees:
    return OrderedTrees(**{name: getattr(form, name) for name in form.__dataclass_fields__})


@dataclass(frozen=True)
class OrderedTrees(FusedTrees):
    """Trees whose operator reads the samples in order, and whose sums are put back."""

    def _write_sums(self, op: GraphBuilder, values: np.ndarray, base: Any) -> None:
        key, sums = op.unique("order"), op.unique("sums_in_order")
        form = FusedTrees(**{name: getattr(self, name) for name in self.__dataclass_fields__})
        if not _write_keys(op, form, key):
            super()._write_sums(op, values, base)
            return
        key = op.Squeeze(key, [1])
        size = op.Shape(key)
        _, order = op.TopK(key, size, axis=0, largest=0, n_outputs=2)
        replace(form, samples=op.Gather(self.samples, order, axis=0), sums=sums)._write_sums(op, values, base)
        _, places = op.TopK(order, size, axis=0, largest=0, n_outputs=2)
        op.node("Gather", sums, places, axis=0, outputs=[self.sums])


def _write_keys(op: GraphBuilder, form: FusedTrees, output: str) -> bool:
    """Append the leaves that samples reach in the largest trees, as one number, if trees are large enough.

    Leaves of a tree are numbered from left to right: neighbours in the order of their numbers take mostly the
    same branches of all trees.
    """
    leaves = np.add.reduceat(form.nodes.is_leaf.astype(np.int64), form.nodes.roots)
    if leaves.mean() < LEAVES or len(leaves) * np.log2(leaves.mean()) < LEVELS:
        return False
    chosen = np.argsort(-leaves, kind="stable")[:3]
    chosen = chosen[np.cumprod(leaves[chosen]) <= KEYS]
    if not len(chosen):
        return False
    nodes = form.nodes.part(chosen)
    numbers, sizes = _numbers(nodes), leaves[chosen]
    weights = numbers * (np.prod(sizes) // np.cumprod(sizes))[nodes.trees[nodes.is_leaf]]
    every = np.arange(len(weights))
    replace(form, nodes=nodes).write(op, output, 1, every, np.zeros_like(every), weights)
    return True


def _numbers(nodes: Nodes) -> np.ndarray:
    """Return the numbers of leaves in their trees, from left to right."""
    left, right = nodes.children
    position = np.zeros(len(nodes.is_leaf))  # beginning of the interval of each node
    level, width = nodes.roots, 1.0
    while len(level := level[~nodes.is_leaf[level]]):
        width /= 2
        position[left[level]], position[right[level]] = position[level], position[level] + width
        level = np.concatenate([left[level], right[level]])
    leaves = np.flatnonzero(nodes.is_leaf)
    numbers = np.empty(len(leaves), dtype=np.int64)
    numbers[np.lexsort((position[leaves], nodes.trees[leaves]))] = np.arange(len(leaves))
    counts = np.bincount(nodes.trees[leaves])
    return numbers - np.repeat(np.cumsum(counts) - counts, counts)
