"""Trees as the fused operator TreeEnsembleRegressor."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ...graphs import GraphBuilder, initializer_arrays
from ..fusion import ML, FusedForm, attribute_of, computes, replace_tensors
from .nodes import Nodes

MAX_LEAVES = 2**24  # the operator returns float32, which represents integers exactly up to this one


@dataclass(frozen=True)
class FusedTrees(FusedForm):
    """Trees as one operator: sums of float32 leaf values, or the numbers of leaves to look up in a table."""

    samples: str  # tensor of shape (n, n_features), of the type of the thresholds
    numbers: str  # tensor of the numbers of the leaves, int64 of shape (n, n_trees)
    nodes: Nodes  # with the thresholds that samples are compared with
    sums: str = ""  # tensor of the sums of the values of leaves; empty without any
    table: str = ""  # initializer of values, (n_leaves,), (n_leaves, k) or (n_leaves, n_outputs, k)
    n_scores: int = 1  # columns of the sums of a table of one value per leaf: tree i adds to i % n_scores
    base: str = ""  # initializer of the numbers that the sums begin with, one for each column

    def apply(self, model: ModelProto) -> ModelProto:
        if computes(model, self.sums):
            arrays = initializer_arrays(model, (self.table, self.base))
            if arrays[self.table].dtype == self.nodes.threshold.dtype == np.float32:
                model = replace_tensors(model, [self.sums], lambda op: self._write_sums(op, arrays))
        if computes(model, self.numbers) and int(self.nodes.is_leaf.sum()) <= MAX_LEAVES:
            model = replace_tensors(model, [self.numbers], self._write_numbers)
        return model

    def _write_sums(self, op: GraphBuilder, arrays: dict[str, np.ndarray]) -> None:
        values, base = arrays[self.table], arrays[self.base].ravel() if self.base else ()
        if values.ndim == 1:
            targets, weights = self._trees_of_leaves() % self.n_scores, values
            self._write(op, self.sums, self.n_scores, np.arange(len(values)), targets, weights, base)
            return
        flat = values.reshape(len(values), -1)
        is_written = flat != 0
        is_written[:, 0] |= ~is_written.any(axis=1)  # every leaf has a value
        leaves, targets = np.nonzero(is_written)
        several = values.ndim > 2
        output = op.unique("TreeEnsembleRegressor") if several else self.sums
        self._write(op, output, flat.shape[1], leaves, targets, flat[leaves, targets], base)
        if several:
            op.node("Reshape", output, [-1, *values.shape[1:]], outputs=[self.sums])

    def _write_numbers(self, op: GraphBuilder) -> None:
        leaves = np.arange(int(self.nodes.is_leaf.sum()))
        output = op.unique("TreeEnsembleRegressor")
        self._write(op, output, len(self.nodes.sizes), leaves, self._trees_of_leaves(), leaves)
        op.node("Cast", output, to=TensorProto.INT64, outputs=[self.numbers])

    def _trees_of_leaves(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.nodes.sizes)), self.nodes.sizes)[self.nodes.is_leaf]

    def _write(
        self, op: GraphBuilder, output: str, n_targets: int, leaves: Any, targets: Any, weights: Any, base=()
    ) -> None:
        """Append the operator, which adds a weight to a target where a sample reaches a leaf."""
        nodes, is_leaf = self.nodes, self.nodes.is_leaf
        tree = np.repeat(np.arange(len(nodes.sizes)), nodes.sizes)
        number = np.arange(len(tree)) - (np.cumsum(nodes.sizes) - nodes.sizes)[tree]
        of_leaf = np.flatnonzero(is_leaf)[leaves]
        options: Any = {"domain": ML, "outputs": [output], "n_targets": int(n_targets)}
        options |= {"post_transform": "NONE", "aggregate_function": "SUM"}
        options["base_values"] = list(map(float, base)) or None
        op.node("TreeEnsembleRegressor", self.samples, **options)
        attributes: dict[str, Any] = {
            "nodes_treeids": tree,
            "nodes_nodeids": number,
            "nodes_featureids": np.where(is_leaf, 0, nodes.feature),
            "nodes_modes": np.where(is_leaf, b"LEAF", b"BRANCH_LEQ"),
            "nodes_values": np.where(is_leaf, 0, nodes.threshold).astype(nodes.threshold.dtype),
            "nodes_truenodeids": np.where(is_leaf, 0, nodes.left),
            "nodes_falsenodeids": np.where(is_leaf, 0, nodes.right),
            "target_treeids": tree[of_leaf],
            "target_nodeids": number[of_leaf],
            "target_ids": targets,
            "target_weights": weights.astype(nodes.threshold.dtype),
        }
        if nodes.missing_left.any():
            attributes["nodes_missing_value_tracks_true"] = (nodes.missing_left & ~is_leaf).astype(int)
        for name, values in attributes.items():
            op.add_attribute(attribute_of(name, values))
