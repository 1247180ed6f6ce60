"""TreeEnsembleRegressor and TreeEnsembleClassifier: leaf numbers, a table of leaf values, sums and a link."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .common import Fused
from .links import LINKS
from .tree_leaves import AGGREGATES, aggregated_leaves
from .trees import Trees, base_values, read_trees

__all__ = ["tree_classifier", "tree_regressor"]

#: What sums of shares may differ from one by.
ROUNDING = 1e-3
#: Added to shares: where all are zero the classes are equally likely.
TINY = 1e-30


def tree_regressor(fused: Fused, may_number: bool = True) -> bool:
    """Write a regression by trees as sums of trainable leaf values.

    A single tree may give the numbers of its leaves, where ``may_number`` is true: there is nothing to learn.
    """
    n_targets, link = int(fused.attribute("n_targets", 1)), fused.link()
    aggregate = fused.text("aggregate_function", "SUM", AGGREGATES)
    trees, base = read_trees(fused, "target", n_targets), base_values(fused, n_targets)
    numbers = len(trees.tree_ids) == 1 and np.array_equal(trees.values, trees.leaf_nodes[:, None])
    scores = None if numbers and may_number else _scores(fused, trees, base, aggregate)
    if scores is None:
        return False
    if n_targets == 1 and link != "PROBIT":
        link = "NONE"  # onnxruntime leaves a single column as it is
    return fused.give(LINKS[link](fused.op, scores))


def _scores(fused: Fused, trees: Trees, base: np.ndarray | None, aggregate: str = "SUM") -> str | None:
    scores = aggregated_leaves(fused, trees, aggregate)
    if scores is None or base is None:
        return scores
    return fused.op.Add(scores, fused.weight("base_values", base))


def tree_classifier(fused: Fused) -> bool:
    """Write a classification by trees as sums of trainable leaf values, probabilities and a label.

    Two classes whose leaves have one value each are one column of scores s. Where no value is negative,
    it is the probability of the second class, as forests have it: (1 - s, s), and the second class wins
    above 1/2. Otherwise it is a raw score, as boosting has it: (-s, s), through a sigmoid where the
    operator says so, and the second class wins above 0. onnxruntime-training 1.19.2 leaves the sigmoid
    out where no value is negative, and it and newer versions then ask for 1/2 of the raw score.
    Shares of a forest stay probabilities whatever their leaves become: negative ones count as zero, and
    they are divided by their sum.
    """
    op, link, classes = fused.op, fused.link(), fused.classes("classlabels_int64s")
    n_classes = len(classes)
    trees = read_trees(fused, "class", n_classes)
    base = base_values(fused, n_classes, *([1] if n_classes == 2 else []))
    is_binary = n_classes == 2 and not trees.used[:, 1].any()
    if n_classes < 2 or _votes_for_leaves(trees):
        return False
    if is_binary and (link not in ("NONE", "LOGISTIC") or (base is not None and base.size == 2)):
        return False
    if n_classes == 2 and not is_binary and (base is not None or not trees.used.all()):
        return False  # onnxruntime then reads the scores of one class only
    if is_binary:  # the values are written at the first class, and are scores of the second
        trees = replace(trees, values=trees.values[:, :1], used=trees.used[:, :1])
    raw = _scores(fused, trees, base)
    if raw is None:
        return False
    positive = trees.values.min() >= 0
    if is_binary and not (positive and link == "NONE"):
        return fused.give_two_classes(classes, raw, link)
    most = np.maximum.reduceat(trees.values.sum(axis=1), trees.first_leaves).sum()
    if is_binary:
        raw = op.Concat(op.Sub(1.0, raw), raw, axis=1)
    are_shares = most <= 1 + ROUNDING and (is_binary or (most >= 1 - ROUNDING and positive))
    fused.give_label(classes, raw)
    if are_shares and link == "NONE" and base is None:
        present = op.Add(op.Max(raw, 0.0), TINY)
        raw = op.Div(present, op.ReduceSum(present, [1]))
    return fused.give_scores(LINKS[link](op, raw))


def _votes_for_leaves(trees: Trees) -> bool:
    """Return whether the classes are the leaves of a single tree: there is nothing to learn."""
    leaves = np.arange(len(trees.leaf_nodes))
    return (
        len(trees.tree_ids) == 1
        and int(trees.used.sum()) == len(leaves)
        and trees.leaf_nodes.max() < trees.used.shape[1]
        and bool(trees.used[leaves, trees.leaf_nodes].all())
    )
