"""IsolationForest as one operator: the depths of its leaves, summed over trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .tree_attributes import leaf_attributes, leaves_of, nodes_of, routing_attributes
from .writing import add_nodes, float_input, new_builder, write_output

__all__ = ["average_path_length", "convert"]


def average_path_length(counts: Any) -> np.ndarray:
    """Return the mean depth at which a row is alone in a tree grown on so many rows.

    Parameters
    ----------
    counts : array-like of int
        Numbers of rows n.

    Returns
    -------
    ndarray of float64
        ``c(n) = 2 H(n - 1) - 2 (n - 1) / n`` with ``H(i) = ln(i) + 0.5772``, ``c(2) = 1``, ``c(1) = 0``.

    References
    ----------
    Liu, F. T., Ting, K. M. and Zhou, Z.-H., "Isolation forest", ICDM 2008, equation 1.

    Examples
    --------
    >>> from ortlearn.conversion.converters.isolation_forest import average_path_length
    >>> average_path_length([1, 2, 256]).round(2)
    array([ 0.  ,  1.  , 10.24])
    """
    n = np.asarray(counts, dtype=np.float64)
    more = np.maximum(n, 3)
    length = 2 * (np.log(more - 1) + np.euler_gamma) - 2 * (more - 1) / more
    return np.where(n > 2, length, np.where(n == 2, 1.0, 0.0))


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the label (1, or -1 for an outlier) and ``decision_function`` of an isolation forest.

    A row's score is ``-2^(-d / (T c(n))) - offset`` with d the sum over T trees, each grown on n rows, of
    the depth of its leaf plus c(rows of the leaf): equation 2 of the paper.
    """
    forest = operator.raw_operator
    members = [estimator.tree_ for estimator in forest.estimators_]
    trees = [nodes_of(tree, own) for tree, own in zip(members, forest.estimators_features_, strict=True)]
    # What scikit-learn adds up itself, not the structure: other depths may have been written there.
    paths = zip(members, forest._decision_path_lengths, forest._average_path_length_per_tree, strict=True)
    depths = [(path + length - 1.0)[leaves_of(tree)][:, None] for tree, path, length in paths]
    op = new_builder(scope)
    depth = op.node(
        "TreeEnsembleRegressor",
        float_input(op, operator),
        domain="ai.onnx.ml",
        n_targets=1,
        **routing_attributes(trees),
        **leaf_attributes(trees, depths, [np.array([0])] * len(trees)),
    )
    whole = float(len(trees) * average_path_length(forest.max_samples_))
    exponent = op.Mul(depth, -float(np.log(2)) / whole if whole else 0.0)
    score = op.Sub(op.Neg(op.Exp(exponent)), np.array([forest.offset_], dtype=np.float32))
    write_output(op, score, operator.outputs[1])
    outlier = op.Cast(op.Less(score, 0.0), to=TensorProto.INT64)
    op.node("Sub", 1, op.Mul(outlier, 2), outputs=[operator.outputs[0].full_name])
    add_nodes(container, op)
