"""Minimal cost-complexity pruning of fitted trees, and trees without some of their subtrees."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Collapses", "without_subtrees"]


@dataclass(frozen=True)
class Collapses:
    """The strength at which each node becomes a leaf, infinite for leaves, and the leaves that it removes."""

    strengths: np.ndarray
    removed: np.ndarray

    @classmethod
    def of(cls, tree: Any) -> Collapses:
        """Return those of weakest-link pruning (Breiman et al., 1984, section 3.3).

        The node with the lowest increase of the impurity per removed leaf becomes a leaf, one by one.
        """
        left, right, count = tree.children_left, tree.children_right, tree.node_count
        risk = tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
        below, leaves, parents = risk.copy(), np.ones(count, dtype=int), np.full(count, -1)
        inner = np.flatnonzero(left >= 0)
        for node in inner[::-1]:  # children have larger numbers
            children = [left[node], right[node]]
            parents[children] = node
            below[node], leaves[node] = below[children].sum(), leaves[children].sum()
        strengths, removed = np.full(count, np.inf), np.zeros(count, dtype=int)

        def increase(node: int) -> float:
            return float((risk[node] - below[node]) / (leaves[node] - 1))

        heap, reached = [(increase(node), node) for node in inner.tolist()], 0.0
        heapq.heapify(heap)
        while heap:
            value, node = heapq.heappop(heap)
            if leaves[node] == 1 or value != increase(node):  # pruned, or changed since
                continue
            reached = max(reached, value)
            gone, change = leaves[node] - 1, risk[node] - below[node]
            strengths[node], removed[node] = reached, gone
            pending = [node]
            while pending:  # all nodes below are gone
                one = pending.pop()
                pending += [int(child[one]) for child in (left, right) if leaves[one] > 1]
                leaves[one] = 1
            while (node := int(parents[node])) >= 0:
                leaves[node], below[node] = leaves[node] - gone, below[node] + change
                heapq.heappush(heap, (increase(node), node))
        return cls(strengths, removed)


def without_subtrees(tree: Any, is_leaf: np.ndarray) -> Any:
    """Return a tree in which some nodes are leaves, made from its pickled form."""
    make, arguments, state = tree.__reduce__()
    nodes, count = state["nodes"].copy(), tree.node_count
    is_leaf = is_leaf | (nodes["left_child"] < 0)
    depth = np.full(count, -1)
    depth[0] = 0
    for node in np.flatnonzero(~is_leaf):  # children have larger numbers
        if depth[node] >= 0:
            depth[[nodes["left_child"][node], nodes["right_child"][node]]] = depth[node] + 1
    kept = depth >= 0
    number = np.cumsum(kept) - 1
    for name in ("left_child", "right_child"):
        nodes[name] = np.where(is_leaf, -1, number[nodes[name]])
    nodes["feature"][is_leaf], nodes["threshold"][is_leaf] = -2, -2.0
    found = make(*arguments)
    new = {"nodes": nodes[kept], "values": state["values"][kept], "node_count": int(kept.sum())}
    found.__setstate__({**state, **new, "max_depth": int(depth.max())})
    return found
