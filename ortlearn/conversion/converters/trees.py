"""Decision trees and forests: missing values, and classifiers of several outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .tree_attributes import leaf_attributes, leaves_of, nodes_of, routing_attributes
from .writing import add_nodes, float_input, new_builder, write_output

__all__ = ["convert"]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write a tree or a forest.

    skl2onnx sends missing values right at every split, gives a tree of several outputs zeros and ones as
    its probabilities, and writes each tree of such a forest with a class for every node.
    """
    from skl2onnx.common._registration import get_converter

    estimator = operator.raw_operator
    if hasattr(estimator, "classes_") and estimator.n_outputs_ > 1:
        _convert_several_outputs(scope, operator, container)
        return
    known = len(container.nodes)
    get_converter(operator.type)(scope, operator, container)
    _track_missing(container.nodes[known:], _trees(estimator))


def _trees(estimator: Any) -> list[Any]:
    return [member.tree_ for member in getattr(estimator, "estimators_", [estimator])]


def _track_missing(nodes: list[Any], trees: list[Any]) -> None:
    """Send missing values where scikit-learn sends them."""
    tracks = np.concatenate([nodes_of(tree).tracks for tree in trees]).astype(np.int64)
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name == "nodes_missing_value_tracks_true" and len(attribute.ints) == len(tracks):
                attribute.ints[:] = tracks.tolist()


def _convert_several_outputs(scope: Any, operator: Any, container: Any) -> None:
    """Write labels (rows, outputs) and probabilities (outputs, rows, classes).

    Outputs with fewer classes than others have zeros in the place of those they lack.
    """
    estimator, op = operator.raw_operator, new_builder(scope)
    members = _trees(estimator)
    trees = [nodes_of(tree) for tree in members]
    n_outputs, n_classes = estimator.n_outputs_, int(max(estimator.n_classes_))
    shares = op.node(
        "TreeEnsembleRegressor",
        float_input(op, operator),
        domain="ai.onnx.ml",
        n_targets=n_outputs * n_classes,
        **routing_attributes(trees),
        **leaf_attributes(
            trees,
            [_leaf_shares(tree) / len(trees) for tree in members],
            [np.arange(n_outputs * n_classes)] * len(trees),
        ),
    )
    table = op.Reshape(shares, [-1, n_outputs, n_classes])
    write_output(op, op.Transpose(table, perm=[1, 0, 2]), operator.outputs[1])
    places = op.Add(op.ArgMax(table, axis=2, keepdims=0), np.arange(n_outputs) * n_classes)
    label = operator.outputs[0].full_name
    op.node("Gather", op.constant(_all_classes(estimator, n_classes)), places, outputs=[label], axis=0)
    add_nodes(container, op)


def _leaf_shares(tree: Any) -> np.ndarray:
    """Return the share of each class of each output in the leaves: (n_leaves, n_outputs * n_classes)."""
    values = tree.value[leaves_of(tree)]
    return (values / values.sum(axis=2, keepdims=True)).reshape(len(values), -1)


def _all_classes(estimator: Any, n_classes: int) -> np.ndarray:
    """Return the classes of all outputs, one after the other, the first again where there are fewer."""
    rows = [
        np.append(classes, np.repeat(classes[:1], n_classes - len(classes))) for classes in estimator.classes_
    ]
    joined = np.concatenate(rows)
    return joined.astype(object) if joined.dtype.kind in "UO" else joined.astype(np.int64)
