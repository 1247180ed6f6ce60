"""Decomposition of ai.onnx.ml.TreeEnsemble."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from ...graphs import copy_model, opset_versions
from .common import Fused
from .tree_operators import tree_regressor

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = len(MODES)  # mode of tests for membership in a set
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
LINKS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
#: Attributes of nodes of the older operators, without the prefix ``nodes_``.
FIELDS = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
TRACKS = "missing_value_tracks_true"
NEW_TREES = 5  # version of ai.onnx.ml that replaced older operators by TreeEnsemble
OLD_TREES = {"TreeEnsembleClassifier", "TreeEnsembleRegressor"}


def tree_ensemble(fused: Fused) -> bool:
    """Decompose trees, as a TreeEnsembleRegressor, into sums of trainable leaf values."""
    # onnxruntime-training 1.19.2 has no kernel for TreeEnsemble. Set membership is a chain of equalities.
    n_splits, weights = fused.array("nodes_featureids").size, fused.floats("leaf_weights")
    targets = fused.integers("leaf_targetids", weights.size)
    nodes = [node for tree in _trees(fused, n_splits, weights.size) for node in tree]
    columns: dict[str, Any] = dict(zip((*FIELDS, TRACKS), map(list, zip(*nodes, strict=True)), strict=True))
    leaves = [(node[0], node[1]) for node in nodes if node[2] == "LEAF"]
    indices = [number - n_splits for _, number in leaves]
    thresholds = np.array(columns.pop("values"))
    if fused.array("nodes_splits").dtype == np.float64:  # thresholds stay in float64
        columns["values_as_tensor"] = numpy_helper.from_array(thresholds)
    else:
        columns["values"] = thresholds.tolist()
    node = helper.make_node(
        "TreeEnsembleRegressor",
        fused.node.input,
        fused.node.output,
        name=fused.node.name,
        n_targets=fused.attribute("n_targets", 1),
        aggregate_function=AGGREGATES[fused.attribute("aggregate_function", 1)],
        post_transform=LINKS[fused.attribute("post_transform", 0)],
        target_treeids=[tree for tree, _ in leaves],
        target_nodeids=[number for _, number in leaves],
        target_ids=targets[indices].tolist(),
        target_weights=weights[indices].tolist(),
        **{f"nodes_{name}": values for name, values in columns.items()},
    )
    return tree_regressor(Fused(node, fused.op), allow_leaf_indices=False)


def _trees(fused: Fused, n_splits: int, n_leaves: int) -> Iterator[Iterator[tuple]]:
    """Yield the nodes of each tree, root first, as ``FIELDS`` and ``TRACKS``; leaf k is node n_splits + k."""
    yes, no = (_children(fused, side, n_splits, n_leaves) for side in ("true", "false"))
    features, modes, splits = (
        fused.array(f"nodes_{name}", n_splits).tolist() for name in ("featureids", "modes", "splits")
    )
    tracks = fused.integers(f"nodes_{TRACKS}", 0, n_splits).tolist() or [0] * n_splits
    sets: list[list[float]] = [[]]
    for value in fused.array("membership_values").tolist():
        sets.append([]) if np.isnan(value) else sets[-1].append(value)
    members = dict(zip([node for node, mode in enumerate(modes) if mode == MEMBER], sets, strict=False))

    def walk(tree: int, root: int) -> Iterator[tuple]:
        further = count(n_splits + n_leaves)
        waiting, seen = [root], set()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node >= n_splits:
                yield (tree, node, "LEAF", 0, 0.0, 0, 0, 0)
                continue
            waiting += {yes[node], no[node]}
            if yes[node] == no[node]:
                continue  # a tree of one leaf
            if modes[node] != MEMBER:
                values, mode = [splits[node]], MODES[modes[node]]
            else:  # no value equals NaN, the member of an empty set
                values, mode = members[node] or [np.nan], "BRANCH_EQ"
            ids = [node, *(next(further) for _ in values[1:]), no[node]]
            for number, value, other in zip(ids, values, ids[1:], strict=False):
                yield (tree, number, mode, features[node], value, yes[node], other, tracks[node])

    roots = fused.integers("tree_roots")
    if not roots.size or roots.min() < 0 or roots.max() >= n_splits:
        raise ValueError("tree_roots refers to nodes that do not exist")
    return (walk(tree, root) for tree, root in enumerate(roots.tolist()))


def _children(fused: Fused, side: str, n_splits: int, n_leaves: int) -> list[int]:
    """Return the children of splits on one side."""
    indices = fused.integers(f"nodes_{side}nodeids", n_splits)
    are_leaves = fused.array(f"nodes_{side}leafs", n_splits) != 0
    if np.any(indices < 0) or np.any(indices >= np.where(are_leaves, n_leaves, n_splits)):
        raise ValueError(f"nodes_{side}nodeids refers to nodes or leaves that do not exist")
    return np.where(are_leaves, n_splits + indices, indices).tolist()


def with_tree_opset(model: ModelProto) -> ModelProto:
    """Return a model with the newest version of ai.onnx.ml that has the tree operators in it."""
    kinds = {node.op_type for node in model.graph.node if node.domain == "ai.onnx.ml"}
    version = opset_versions(model).get("ai.onnx.ml", 0)
    if version < NEW_TREES or not kinds & OLD_TREES or "TreeEnsemble" in kinds:
        return model
    result = copy_model(model)
    for item in result.opset_import:
        if item.domain == "ai.onnx.ml":
            item.version = NEW_TREES - 1
    return result
