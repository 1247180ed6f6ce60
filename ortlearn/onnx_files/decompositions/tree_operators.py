"""TreeEnsembleRegressor and TreeEnsembleClassifier: leaf numbers, a table of leaf values, sums and a link."""

from __future__ import annotations

import numpy as np

from .common import Fused
from .links import LINKS, apply_link
from .tree_leaves import aggregated_leaves
from .tree_nodes import Trees, base_values, read_trees

__all__ = ["tree_classifier", "tree_regressor", "write_regression"]


def tree_regressor(fused: Fused) -> bool:
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
    """Return whether the leaves of a single tree give their own numbers: there is nothing to learn."""
    return trees.n_trees == 1 and np.array_equal(trees.values, trees.leaf_nodes[:, None])


#: What sums of shares may differ from one by.
ROUNDING = 1e-3
#: Added to shares: where all are zero the classes are equally likely.
TINY = 1e-30


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
    classes = fused.classes("classlabels_int64s")
    trees = read_trees(fused, "class", len(classes)) if len(classes) > 1 else None
    link = fused.text("post_transform", "NONE")
    if trees is None or link not in LINKS or _votes_for_leaves(trees):
        return False
    if len(classes) == 2 and not trees.used[:, 1].any():
        return _write_binary(fused, trees, classes, link, base_values(fused, 1))
    return _write_classes(fused, trees, classes, link, base_values(fused, len(classes)))


def _votes_for_leaves(trees: Trees) -> bool:
    """Return whether the classes are the leaves of a single tree: there is nothing to learn."""
    leaves = np.arange(len(trees.leaf_nodes))
    return (
        trees.n_trees == 1
        and int(trees.used.sum()) == len(leaves)
        and trees.leaf_nodes.max() < trees.used.shape[1]
        and bool(trees.used[leaves, trees.leaf_nodes].all())
    )


def _write_classes(
    fused: Fused, trees: Trees, classes: np.ndarray, link: str, base: np.ndarray | None
) -> bool:
    """Write one column of scores for each class; the first of the largest wins."""
    if base is not None and base.size != len(classes):
        return False
    if len(classes) == 2 and (base is not None or not trees.used.all()):
        return False  # onnxruntime then reads the scores of one class only
    raw = _raw_scores(fused, trees, base)
    if raw is None:
        return False
    are_shares = link == "NONE" and base is None and _is_one(_largest(trees, trees.values.sum(axis=1)))
    scores = _normalised(fused, raw) if are_shares and trees.values.min() >= 0 else raw
    apply_link(fused.op, link, scores, fused.scores_name())
    _write_label(fused, classes, raw)
    return True


def _write_binary(
    fused: Fused, trees: Trees, classes: np.ndarray, link: str, base: np.ndarray | None
) -> bool:
    """Write one column of scores for the second class."""
    op = fused.op
    if link not in ("NONE", "LOGISTIC") or (base is not None and base.size != 1):
        return False
    raw = _raw_scores(fused, trees.of_output(0), base)
    if raw is None:
        return False
    positive = trees.values.min() >= 0
    if link == "NONE" and positive:
        columns = scores = op.Concat(op.Sub(1.0, raw), raw, axis=1)
        if base is None and _largest(trees, trees.values[:, 0]) <= 1 + ROUNDING:
            scores = _normalised(fused, columns)
    else:
        columns = scores = op.Concat(op.Neg(raw), raw, axis=1)
        if link == "LOGISTIC":
            probability = op.Sigmoid(raw)
            scores = op.Concat(op.Sub(1.0, probability), probability, axis=1)
    fused.write("Identity", scores, output=fused.scores_name())
    # From raw scores: two sigmoids of large ones are equal.
    _write_label(fused, classes, columns)
    return True


def _raw_scores(fused: Fused, trees: Trees, base: np.ndarray | None) -> str | None:
    raw = aggregated_leaves(fused, trees)
    return raw if raw is None or base is None else fused.op.Add(raw, fused.weight("base_values", base))


def _largest(trees: Trees, values: np.ndarray) -> float:
    """Return the largest sum over trees of one value per leaf."""
    return float(np.maximum.reduceat(values, trees.first_leaves).sum())


def _is_one(value: float) -> bool:
    return abs(value - 1) <= ROUNDING


def _normalised(fused: Fused, shares: str) -> str:
    """Write shares that are probabilities also once their leaves have been trained on their own."""
    op = fused.op
    positive = op.Add(op.Max(shares, 0.0), TINY)
    return op.Div(positive, op.ReduceSum(positive, [1]))


def _write_label(fused: Fused, classes: np.ndarray, columns: str) -> None:
    label, op = fused.node.output[0], fused.op
    if label:
        best = op.ArgMax(columns, axis=1, keepdims=0)
        fused.write("Gather", op.constant(classes), best, output=label, axis=0)
