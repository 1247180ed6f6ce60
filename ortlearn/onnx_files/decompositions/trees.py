"""The decision trees of a fused operator as checked arrays."""

from dataclasses import dataclass, field

import numpy as np
from onnx import AttributeProto

from .common import Fused

MAX_DEPTH = 10_000


@dataclass(frozen=True)
class Trees:
    """Decision trees: how they route samples, and the values of their leaves."""

    routing: list[AttributeProto] = field(repr=False)  # nodes_* of a TreeEnsembleRegressor without hit rates
    tree_ids: np.ndarray  # numbers of the trees in the operator's order, (n_trees,)
    leaf_trees: np.ndarray  # position of the tree of each leaf, (n_leaves,), increasing
    leaf_nodes: np.ndarray  # number of each leaf within its tree, (n_leaves,)
    values: np.ndarray  # float32, (n_leaves, n_outputs)
    used: np.ndarray  # mask of the values that the operator names, (n_leaves, n_outputs)

    def output_of_trees(self) -> np.ndarray | None:
        """Return the output that each tree adds to, None if a tree does not have exactly one."""
        uses = np.zeros((len(self.tree_ids), self.used.shape[1]), dtype=bool)
        np.logical_or.at(uses, self.leaf_trees, self.used)
        return uses.argmax(axis=1) if (uses.sum(axis=1) == 1).all() else None


def base_values(fused: Fused, n_outputs: int, *others: int) -> np.ndarray | None:
    """Return the base values of scores; None for none, or zeros of another number than outputs."""
    base = fused.floats("base_values", 0, n_outputs, *others)
    return base if base.any() or base.size == n_outputs else None


def read_trees(fused: Fused, prefix: str, n_outputs: int) -> Trees:
    """Return the trees of an operator whose attributes of leaves begin with ``"target"`` or ``"class"``."""
    weights = fused.floats(f"{prefix}_weights")
    outputs, leaf_trees, leaf_nodes = (
        fused.integers(f"{prefix}_{name}", weights.size) for name in ("ids", "treeids", "nodeids")
    )
    nodes, treeids, modes, yes, no = _read_nodes(fused)
    if not weights.size or outputs.min() < 0 or outputs.max() >= n_outputs:
        raise ValueError(f"it has no leaves, or {prefix}_ids names outputs beyond the {n_outputs} there are")
    inner = np.flatnonzero(modes != b"LEAF")
    tree_ids = treeids[np.sort(np.unique(treeids, return_index=True)[1])]
    places = {key: place for place, key in enumerate(zip(treeids.tolist(), nodes.tolist(), strict=True))}
    if len(places) < nodes.size:
        raise ValueError("a tree has two nodes of one number")

    def find(trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        found = [places.get(key, -1) for key in zip(trees.tolist(), numbers.tolist(), strict=True)]
        if -1 in found:
            raise ValueError(f"a child, or {prefix}_nodeids, names a node that the tree does not have")
        return np.array(found, dtype=np.int64)

    _check_ends(nodes.size, inner, find(treeids[inner], yes[inner]), find(treeids[inner], no[inner]))
    position = {tree: number for number, tree in enumerate(tree_ids.tolist())}
    node_trees = np.array([position[tree] for tree in treeids.tolist()])
    # leaves by tree, in the operator's order
    leaves = np.flatnonzero(modes == b"LEAF")
    leaves = leaves[np.argsort(node_trees[leaves], kind="stable")]
    leaf_of_node = np.full(nodes.size, -1)
    leaf_of_node[leaves] = np.arange(len(leaves))
    owners = leaf_of_node[find(leaf_trees, leaf_nodes)]
    known = owners >= 0  # onnxruntime ignores values of inner nodes
    cells = owners[known], outputs[known]
    values = np.zeros((len(leaves), n_outputs), dtype=np.float32)
    np.add.at(values, cells, weights[known])
    used = np.zeros(values.shape, dtype=bool)
    used[cells] = True
    routing = [a for a in fused.node.attribute if a.name.startswith("nodes_") and "hitrates" not in a.name]
    return Trees(routing, tree_ids, node_trees[leaves], nodes[leaves], values, used)


def _read_nodes(fused: Fused) -> list[np.ndarray]:
    """Return numbers, trees, modes and both children of the nodes: (n_nodes,) each."""
    size = fused.array("nodes_nodeids").size
    names = ("nodeids", "treeids", "modes", "truenodeids", "falsenodeids")
    found = [fused.array(f"nodes_{name}", size) for name in names]
    features = fused.integers("nodes_featureids", size)[found[2] != b"LEAF"]
    fused.array("nodes_values", size)
    for name in ("nodes_hitrates", "nodes_missing_value_tracks_true"):
        fused.array(name, 0, size)
    if not size or np.any(features < 0) or np.any(features >= (fused.columns or np.inf)):
        raise ValueError(f"nodes_featureids names columns that the input, of {fused.columns}, does not have")
    return found


def _check_ends(n_nodes: int, inner: np.ndarray, yes: np.ndarray, no: np.ndarray) -> None:
    """Raise a ValueError for cycles, which would never end."""
    ends = np.ones(n_nodes, dtype=bool)
    ends[inner] = False
    for _ in range(MAX_DEPTH):
        now = ends[yes] & ends[no]
        if now.all():
            return
        if np.array_equal(now, ends[inner]):
            break
        ends[inner] = now
    raise ValueError(f"the nodes of a tree lead back to themselves, or are deeper than {MAX_DEPTH}")
