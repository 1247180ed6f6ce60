"""ai.onnx.ml.TreeEnsembleRegressor -> leaf numbers, a table of leaf values, and sums."""

from __future__ import annotations

import numpy as np

from .common import Fused
from .links import LINKS, apply_link
from .tree_leaves import aggregated_leaves
from .tree_nodes import Trees, base_values, read_trees

__all__ = ["decompose", "write_regression"]


def decompose(fused: Fused) -> bool:
    """Write a regression by trees as sums of trainable leaf values."""
    n_targets = int(fused.attribute("n_targets", 1))
    trees = read_trees(fused, "target", n_targets)
    if trees is None or _gives_leaf_numbers(trees):
        return False
    return write_regression(
        fused,
        trees,
        fused.text("aggregate_function", "SUM"),
        fused.text("post_transform", "NONE"),
        base_values(fused, n_targets),
    )


def write_regression(fused: Fused, trees: Trees, aggregate: str, link: str, base: np.ndarray | None) -> bool:
    """Write aggregated leaves, base values and a transform; False where one of them cannot be written."""
    n_targets = trees.values.shape[1]
    if link not in LINKS or (base is not None and base.size != n_targets):
        return False
    if n_targets == 1 and link != "PROBIT":
        link = "NONE"  # onnxruntime leaves a single column as it is
    scores = aggregated_leaves(fused, trees, aggregate)
    if scores is None:
        return False
    if base is not None:
        scores = fused.op.Add(scores, fused.weight("base_values", base))
    apply_link(fused.op, link, scores, fused.node.output[0])
    return True


def _gives_leaf_numbers(trees: Trees) -> bool:
    """Tell whether the leaves of a single tree give their own numbers: there is nothing to learn."""
    return trees.n_trees == 1 and np.array_equal(trees.values, trees.leaf_nodes[:, None])
