"""IsolationForest: the depths of leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from ..base import ModelDefinition
from ..forms import Reshaped
from ..parameters import Access
from ..scores import Scores
from ..writer import ModelWriter
from .leaves import STEM
from .nodes import Nodes
from .routing import leaf_numbers


def average_path_length(n: float) -> float:
    """Return the mean depth at which a sample is alone in a tree grown on n of them.

    ``c(n) = 2 H(n - 1) - 2 (n - 1) / n`` with ``H(i) = ln(i) + 0.5772``, ``c(2) = 1``, ``c(1) = 0``.

    References
    ----------
    Liu, F. T., Ting, K. M. and Zhou, Z.-H., "Isolation forest", ICDM 2008, equation 1.

    Examples
    --------
    >>> from ortlearn.models.trees.isolation_forest import average_path_length
    >>> average_path_length(2), round(average_path_length(256), 2)
    (1.0, 10.24)
    """
    if n <= 2:
        return float(n == 2)
    return float(2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n)


class _Depths(Access):
    """Depths of leaves as scikit-learn adds them up: splits, and the samples that were left in the leaf."""

    def _parts(self, forest: Any) -> Any:
        leaves = [member.tree_.children_left < 0 for member in forest.estimators_]
        return zip(leaves, forest._decision_path_lengths, forest._average_path_length_per_tree, strict=True)

    def read(self, owner: Any) -> np.ndarray:
        parts = self._parts(owner)
        return np.concatenate([path[leaves] + length[leaves] - 1.0 for leaves, path, length in parts])

    def write(self, owner: Any, value: np.ndarray) -> None:
        paths, begin = [], 0
        for leaves, path, length in self._parts(owner):
            path = path.astype(np.float64)
            end = begin + int(leaves.sum())
            path[leaves] = value[begin:end] + 1.0 - length[leaves]
            paths.append(path)
            begin = end
        owner._decision_path_lengths = tuple(paths)


class IsolationForestDefinition(ModelDefinition):
    """IsolationForest: ``-2^(-d / (T c(n))) - offset_``, d the sum of the depths in T trees.

    Each tree was grown on n samples: equation 2 of Liu, Ting and Zhou (2008).
    """

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        table = op.parameter(
            model,
            "_decision_path_lengths + _average_path_length_per_tree - 1",
            role="table",
            name=STEM,
            access=_Depths(),
        )
        nodes = Nodes.of_trees([member.tree_ for member in model.estimators_], model.estimators_features_)
        numbers = leaf_numbers(op, nodes, x, model.n_features_in_)
        depth = op.ReduceSum(op.Gather(table, numbers, axis=0), [1], keepdims=1)
        whole = len(model.estimators_) * average_path_length(model.max_samples_)
        # Grown on one sample each, every tree gives 1/2.
        log2 = float(np.log(2))
        exponent = op.Mul(depth, -log2 / whole) if whole else op.Sub(op.Mul(depth, 0.0), log2)
        reason = "" if model.contamination != "auto" else "constant of the paper"
        offset = op.parameter(model, "offset_", form=Reshaped((-1,)), role="intercept", reason=reason)
        score = op.Sub(op.Neg(op.Exp(exponent)), offset)
        outlier = op.Reshape(op.Cast(op.Less(score, 0.0), to=TensorProto.INT64), [-1])
        label = op.Sub(1, op.Mul(outlier, 2))
        return Scores("classification", score, 1, "sigmoid", label=label, classes=np.array([-1, 1]))
