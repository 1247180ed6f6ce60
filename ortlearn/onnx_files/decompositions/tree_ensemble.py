"""ai.onnx.ml.TreeEnsemble -> the nodes of a TreeEnsembleRegressor, decomposed as that operator is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from onnx import AttributeProto, ModelProto, helper, numpy_helper

from ...graphs import copy_model, opset_versions
from .common import Fused
from .tree_nodes import Trees
from .tree_operators import write_regression

__all__ = ["tree_ensemble", "with_tree_opset"]

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
#: Number of the mode that tests membership in a set.
MEMBER = len(MODES)
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
#: Version of ai.onnx.ml that has TreeEnsemble and no longer the operators it replaces.
NEW_TREES = 5
OLD_TREES = {"TreeEnsembleClassifier", "TreeEnsembleRegressor"}
LINKS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


class _Node(NamedTuple):
    """A node as the older operators have it, names as after their ``nodes_``, and the number of a leaf."""

    treeids: int
    nodeids: int
    modes: str = "LEAF"
    featureids: int = 0
    values: float = 0.0
    truenodeids: int = 0
    falsenodeids: int = 0
    missing_value_tracks_true: int = 0
    leaf: int = -1


class _Splits(NamedTuple):
    """The operator's own attributes, a list each; ``members`` is the set of each split on membership."""

    featureids: list[int]
    modes: list[int]
    values: list[float]
    tracks: list[int]
    branches: list[tuple[tuple[int, bool], tuple[int, bool]]]
    members: dict[int, list[float]]


def tree_ensemble(fused: Fused) -> bool:
    """Write trees as sums of trainable leaf values.

    Samples are routed by a TreeEnsembleRegressor, for which onnxruntime-training 1.19.2 has a kernel;
    it has none for this operator. A split on membership in a set is a chain of splits on equality there.
    """
    splits = _read_splits(fused)
    targets = np.asarray(fused.attribute("leaf_targetids"), dtype=np.int64)
    weights = numpy_helper.to_array(fused.attribute("leaf_weights")).astype(np.float32)
    roots = fused.attribute("tree_roots")
    nodes = list(_all_nodes(splits, roots))
    leaves = [node for node in nodes if node.modes == "LEAF"]
    rows, own = np.arange(len(leaves)), np.array([node.leaf for node in leaves])
    values = np.zeros((len(leaves), int(fused.attribute("n_targets", 1))), dtype=np.float32)
    values[rows, targets[own]] = weights[own]
    used = np.zeros(values.shape, dtype=bool)
    used[rows, targets[own]] = True
    routing = _attributes(nodes, numpy_helper.to_array(fused.attribute("nodes_splits")).dtype)
    leaf_trees, numbers = np.array([(node.treeids, node.nodeids) for node in leaves]).T
    trees = Trees(routing, np.arange(len(roots)), leaf_trees, numbers, values, used)
    aggregate = AGGREGATES[int(fused.attribute("aggregate_function", 1))]
    return write_regression(fused, trees, aggregate, LINKS[int(fused.attribute("post_transform", 0))], None)


def _read_splits(fused: Fused) -> _Splits:
    def tensor(name: str) -> np.ndarray:
        return numpy_helper.to_array(fused.attribute(name))

    modes = tensor("nodes_modes").tolist()
    sides = [
        [
            (int(child), bool(leaf))
            for child, leaf in zip(
                fused.attribute(f"nodes_{side}nodeids"), fused.attribute(f"nodes_{side}leafs"), strict=True
            )
        ]
        for side in ("true", "false")
    ]
    sets: list[list[float]] = [[]]
    for value in [] if fused.attribute("membership_values") is None else tensor("membership_values").tolist():
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    return _Splits(
        list(fused.attribute("nodes_featureids")),
        modes,
        tensor("nodes_splits").tolist(),
        list(fused.attribute("nodes_missing_value_tracks_true", []) or [0] * len(modes)),
        list(zip(*sides, strict=True)),
        dict(zip([place for place, mode in enumerate(modes) if mode == MEMBER], sets, strict=False)),
    )


def _all_nodes(splits: _Splits, roots: list[int]) -> Iterator[_Node]:
    """Yield the nodes of each tree, its root first, numbered from zero in each."""
    for tree, root in enumerate(roots):
        nodes = list(_tree_nodes(splits, tree, root))
        places = {node.nodeids: place for place, node in enumerate(nodes)}
        for place, node in enumerate(nodes):
            if node.leaf < 0:
                yes, no = places[node.truenodeids], places[node.falsenodeids]
                node = node._replace(truenodeids=yes, falsenodeids=no)
            yield node._replace(nodeids=place)


def _tree_nodes(splits: _Splits, tree: int, root: int) -> Iterator[_Node]:
    """Yield the nodes of one tree: leaves are numbered below zero, further splits of sets after splits."""
    fresh = count(len(splits.modes))
    waiting, leaves = [root], dict[int, None]()
    while waiting:
        place = waiting.pop()
        for child, leaf in splits.branches[place]:
            if leaf:
                leaves[child] = None
            else:
                waiting.append(child)
        yield from _split(splits, tree, place, fresh)
    yield from (_Node(tree, -1 - leaf, leaf=leaf) for leaf in leaves)


def _split(splits: _Splits, tree: int, place: int, fresh: Iterator[int]) -> Iterator[_Node]:
    """Yield one split, or one for each member of its set."""
    yes, no = (-1 - child if leaf else child for child, leaf in splits.branches[place])
    if splits.branches[place][0] == splits.branches[place][1]:
        return  # a tree that is one leaf
    mode, feature, tracks = splits.modes[place], splits.featureids[place], splits.tracks[place]
    if mode != MEMBER:
        yield _Node(tree, place, MODES[mode], feature, splits.values[place], yes, no, tracks)
        return
    # Nothing equals the one member of an empty set.
    members = splits.members[place] or [np.nan]
    ids = [place, *(next(fresh) for _ in members[1:]), no]
    for number, member, other in zip(ids, members, ids[1:], strict=False):
        yield _Node(tree, number, "BRANCH_EQ", feature, member, yes, other, tracks)


def _attributes(nodes: list[_Node], dtype: Any) -> list[AttributeProto]:
    """Return nodes as attributes; float64 thresholds stay what they are."""
    lists = {f"nodes_{name}": [getattr(node, name) for node in nodes] for name in _Node._fields[:-1]}
    if np.dtype(dtype) == np.float64:
        thresholds = np.array(lists.pop("nodes_values"))
        lists["nodes_values_as_tensor"] = numpy_helper.from_array(thresholds)
    return [helper.make_attribute(name, values) for name, values in lists.items()]


def with_tree_opset(model: ModelProto) -> ModelProto:
    """Return a model with the version of ai.onnx.ml that has its operators of decision trees.

    Once TreeEnsemble is decomposed, that is the version before the older operators were removed, the others
    being the same in both.
    """
    kinds = {node.op_type for node in model.graph.node if node.domain == "ai.onnx.ml"}
    version = opset_versions(model).get("ai.onnx.ml", 0)
    if version < NEW_TREES or not kinds & OLD_TREES or "TreeEnsemble" in kinds:
        return model
    result = copy_model(model)
    for item in result.opset_import:
        if item.domain == "ai.onnx.ml":
            item.version = NEW_TREES - 1
    return result
