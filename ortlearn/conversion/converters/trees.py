"""Decision trees and forests: regression, classification, one output or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .tree_attributes import label_attributes, leaf_attributes, leaves_of, nodes_of, routing_attributes
from .writing import add_nodes, float_input, new_builder, write_output

__all__ = ["convert"]

#: Least sum of shares that others are divided by.
TINY = 1e-30


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write a tree or a forest as one operator.

    skl2onnx sends missing values right at every split, gives a classifier of several outputs zeros and
    ones as the probabilities of a tree, and an operator for each tree of a forest, with a class for each
    node. It also takes seconds where the arrays of the trees take milliseconds. Further outputs (paths,
    numbers of leaves) and classifiers of one class, which have nothing to learn, are left to it.
    """
    from skl2onnx.common._registration import get_converter

    estimator = operator.raw_operator
    if len(operator.outputs) > 1 + is_classifier(estimator) or _is_constant(estimator):
        get_converter(operator.type)(scope, operator, container)
        return
    op, write = new_builder(scope), _write_targets
    if is_classifier(estimator):
        write = _write_classes if estimator.n_outputs_ == 1 else _write_several_outputs
    write(op, operator, [member.tree_ for member in getattr(estimator, "estimators_", [estimator])])
    add_nodes(container, op)


def _is_constant(estimator: Any) -> bool:
    """Tell whether a classifier knows a single class."""
    if not is_classifier(estimator):
        return False
    classes = estimator.classes_ if estimator.n_outputs_ > 1 else [estimator.classes_]
    return max(map(len, classes)) < 2


def _write_targets(op: Any, operator: Any, members: list[Any]) -> None:
    n_targets = operator.raw_operator.n_outputs_
    values = [tree.value[leaves_of(tree)].reshape(-1, n_targets) / len(members) for tree in members]
    write_output(op, _sums(op, operator, members, values), operator.outputs[0])


def _sums(op: Any, operator: Any, members: list[Any], values: list[np.ndarray]) -> str:
    """Write the sum over trees of the values of their leaves, an array (n_leaves, k) for each tree."""
    trees, outputs = [nodes_of(tree) for tree in members], np.arange(values[0].shape[1])
    return op.node(
        "TreeEnsembleRegressor",
        float_input(op, operator),
        domain="ai.onnx.ml",
        n_targets=len(outputs),
        **routing_attributes(trees),
        **leaf_attributes(trees, values, [outputs] * len(trees)),
    )


def _write_classes(op: Any, operator: Any, members: list[Any]) -> None:
    """Write the label and the probabilities of one output; of two classes the leaves have the second's."""
    estimator, trees = operator.raw_operator, [nodes_of(tree) for tree in members]
    shares = [_leaf_shares(tree)[:, 0] / len(members) for tree in members]
    if len(estimator.classes_) == 2:
        shares = [own[:, 1:] for own in shares]
    outputs = np.arange(shares[0].shape[1])
    label, probabilities = op.node(
        "TreeEnsembleClassifier",
        float_input(op, operator),
        domain="ai.onnx.ml",
        n_outputs=2,
        **routing_attributes(trees),
        **leaf_attributes(trees, shares, [outputs] * len(trees), "class"),
        **label_attributes(estimator.classes_),
    )
    op.node("Identity", label, outputs=[operator.outputs[0].full_name])
    write_output(op, probabilities, operator.outputs[1])


def _write_several_outputs(op: Any, operator: Any, members: list[Any]) -> None:
    """Write labels (rows, outputs) and probabilities (outputs, rows, classes).

    Of two classes the leaves have the second's share, of more classes all. Outputs with fewer classes
    than others have zeros in the place of those they lack.
    """
    estimator = operator.raw_operator
    shares = [_leaf_shares(tree) / len(members) for tree in members]
    _, n_outputs, n_classes = shares[0].shape
    kept, places = _columns(estimator.n_classes_, n_classes)
    sums = _sums(op, operator, members, [own.reshape(len(own), -1)[:, kept] for own in shares])
    # The sums, what is left of each to one, and zero.
    columns = op.Pad(op.Concat(sums, op.Sub(1.0, sums), axis=1), [0, 0, 0, 1])
    table = op.Reshape(op.Gather(columns, places, axis=1), [-1, n_outputs, n_classes])
    positive = op.Max(table, 0.0)
    total = op.Max(op.ReduceSum(positive, [2]), TINY)
    write_output(op, op.Transpose(op.Div(positive, total), perm=[1, 0, 2]), operator.outputs[1])
    best = op.Add(op.ArgMax(table, axis=2, keepdims=0), np.arange(n_outputs) * n_classes)
    label = operator.outputs[0].full_name
    op.node("Gather", op.constant(_all_classes(estimator, n_classes)), best, outputs=[label], axis=0)


def _columns(sizes: Sequence[int], n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of the leaves' shares to keep, and where each share is among these.

    Kept are the second of two classes and all of more; after them come their rests to one, then zero.
    """
    kept = [k * n_classes + c for k, size in enumerate(sizes) for c in range(int(size == 2), size)]
    place = {column: number for number, column in enumerate(kept)}
    rests = {k * n_classes: len(kept) + place[k * n_classes + 1] for k, size in enumerate(sizes) if size == 2}
    known = {**place, **rests}
    places = [known.get(column, 2 * len(kept)) for column in range(len(sizes) * n_classes)]
    return np.array(kept), np.array(places)


def _leaf_shares(tree: Any) -> np.ndarray:
    """Return the share of each class of each output in the leaves: (n_leaves, n_outputs, n_classes)."""
    values = tree.value[leaves_of(tree)]
    return values / values.sum(axis=2, keepdims=True)


def _all_classes(estimator: Any, n_classes: int) -> np.ndarray:
    """Return the classes of all outputs, one after the other, the first again where there are fewer."""
    rows = [
        np.append(classes, np.repeat(classes[:1], n_classes - len(classes))) for classes in estimator.classes_
    ]
    joined = np.concatenate(rows)
    return joined.astype(object) if joined.dtype.kind in "UO" else joined.astype(np.int64)
