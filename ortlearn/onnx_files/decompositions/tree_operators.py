"""Decompositions of TreeEnsembleRegressor and TreeEnsembleClassifier."""

from dataclasses import dataclass, field, replace

import numpy as np
from onnx import AttributeProto, TensorProto

from ...models.formulas.distances import reduced
from ...models.trees.nodes import MAX_LEAVES
from .common import Fused

MAX_DEPTH = 10_000


@dataclass(frozen=True)
class Trees:
    """Decision trees: routing of samples, and values of leaves."""

    routing: list[AttributeProto] = field(repr=False)  # nodes_* of TreeEnsembleRegressor, without hit rates
    tree_ids: np.ndarray  # ids of the trees in the operator's order, (n_trees,)
    leaf_trees: np.ndarray  # position of the tree of each leaf, (n_leaves,), increasing
    leaf_nodes: np.ndarray  # id of each leaf in its tree, (n_leaves,)
    values: np.ndarray  # float32, (n_leaves, n_outputs)
    used: np.ndarray  # mask of the values that the operator defines, (n_leaves, n_outputs)

    def output_of_trees(self) -> np.ndarray | None:
        """Return the output of each tree; None if a tree has several or no outputs."""
        uses = np.zeros((len(self.tree_ids), self.used.shape[1]), dtype=bool)
        np.logical_or.at(uses, self.leaf_trees, self.used)
        return uses.argmax(axis=1) if (uses.sum(axis=1) == 1).all() else None


def base_values(fused: Fused, n_outputs: int, *others: int) -> np.ndarray | None:
    """Return the base values of scores; None without, or for zeros of another number than outputs."""
    base = fused.floats("base_values", 0, n_outputs, *others)
    return base if base.any() or base.size == n_outputs else None


def read_trees(fused: Fused, prefix: str, n_outputs: int) -> Trees:
    """Return the trees of an operator; ``prefix`` of the attributes of leaves is "target" or "class"."""
    weights = fused.floats(f"{prefix}_weights")
    outputs, leaf_trees, leaf_nodes = (
        fused.integers(f"{prefix}_{name}", weights.size) for name in ("ids", "treeids", "nodeids")
    )
    nodes, treeids, modes, yes, no = _read_nodes(fused)
    if not weights.size or outputs.min() < 0 or outputs.max() >= n_outputs:
        raise ValueError(f"it has no leaves, or {prefix}_ids has values outside of 0 to {n_outputs - 1}")
    inner = np.flatnonzero(modes != b"LEAF")
    tree_ids = treeids[np.sort(np.unique(treeids, return_index=True)[1])]
    indices = {key: index for index, key in enumerate(zip(treeids.tolist(), nodes.tolist(), strict=True))}
    if len(indices) < nodes.size:
        raise ValueError("a tree has two nodes with the same id")

    def find(trees: np.ndarray, ids: np.ndarray) -> np.ndarray:
        found = [indices.get(key, -1) for key in zip(trees.tolist(), ids.tolist(), strict=True)]
        if -1 in found:
            raise ValueError(f"a child, or {prefix}_nodeids, refers to a node that does not exist")
        return np.array(found, dtype=np.int64)

    _check_acyclic(nodes.size, inner, find(treeids[inner], yes[inner]), find(treeids[inner], no[inner]))
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
    """Return ids, trees, modes and both children of the nodes, of shape (n_nodes,) each."""
    size = fused.array("nodes_nodeids").size
    names = ("nodeids", "treeids", "modes", "truenodeids", "falsenodeids")
    found = [fused.array(f"nodes_{name}", size) for name in names]
    features = fused.integers("nodes_featureids", size)[found[2] != b"LEAF"]
    fused.array("nodes_values", size)
    for name in ("nodes_hitrates", "nodes_missing_value_tracks_true"):
        fused.array(name, 0, size)
    if not size or np.any(features < 0) or np.any(features >= (fused.columns or np.inf)):
        raise ValueError(f"nodes_featureids has values outside of the {fused.columns} columns of the input")
    return found


def _check_acyclic(n_nodes: int, inner: np.ndarray, yes: np.ndarray, no: np.ndarray) -> None:
    """Raise a ValueError for cycles, in which onnxruntime does not terminate."""
    ends = np.ones(n_nodes, dtype=bool)
    ends[inner] = False
    for _ in range(MAX_DEPTH):
        now = ends[yes] & ends[no]
        if now.all():
            return
        if np.array_equal(now, ends[inner]):
            break
        ends[inner] = now
    raise ValueError(f"a tree has a cycle, or is deeper than {MAX_DEPTH}")


STEM = "leaf_values"  # name of the table of leaf values
#: Reductions over trees by aggregate function.
AGGREGATES = {"SUM": "ReduceSum", "AVERAGE": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}
ROUNDING = 1e-3  # tolerance of sums of probabilities
TINY = 1e-30  # added to probabilities, so that zeros for all classes are normalized to equal values


def tree_regressor(fused: Fused, allow_leaf_indices: bool = True) -> bool:
    """Decompose a tree regressor into sums of trainable leaf values."""
    n_targets = int(fused.attribute("n_targets", 1))
    aggregate = fused.text("aggregate_function", "SUM", AGGREGATES)
    trees, base = read_trees(fused, "target", n_targets), base_values(fused, n_targets)
    # a tree that returns leaf indices has no values to learn
    are_indices = len(trees.tree_ids) == 1 and np.array_equal(trees.values, trees.leaf_nodes[:, None])
    scores = None if are_indices and allow_leaf_indices else scores_of_leaves(fused, trees, base, aggregate)
    return scores is not None and fused.set_output(fused.linked(scores, n_targets))


def tree_classifier(fused: Fused) -> bool:
    """Decompose a tree classifier into sums of trainable leaf values, probabilities and labels."""
    # Two classes with one value per leaf have one column of scores s. Without negative values, as in forests,
    # s is the probability of the second class: (1 - s, s). Otherwise, as in boosting, it is a raw score:
    # (-s, s). With a sigmoid, onnxruntime compares s with 1/2, and 1.19.2 omits the sigmoid if no value is
    # negative. Probabilities of forests are clipped at zero and normalized.
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
    if is_binary:  # the values of the first class are scores of the second one
        trees = replace(trees, values=trees.values[:, :1], used=trees.used[:, :1])
    raw = scores_of_leaves(fused, trees, base)
    if raw is None:
        return False
    positive = trees.values.min() >= 0
    if is_binary and not (positive and link == "NONE"):
        return fused.set_two_classes(classes, raw, link)
    first_leaves = np.unique(trees.leaf_trees, return_index=True)[1]
    most = np.maximum.reduceat(trees.values.sum(axis=1), first_leaves).sum()
    if is_binary:
        raw = op.Concat(op.Sub(1.0, raw), raw, axis=1)
    are_shares = most <= 1 + ROUNDING and (is_binary or (most >= 1 - ROUNDING and positive))
    fused.set_label(classes, raw)
    if are_shares and link == "NONE" and base is None:
        present = op.Add(op.Max(raw, 0.0), TINY)
        raw = op.Div(present, op.ReduceSum(present, [1]))
    return fused.set_scores(raw, link)


def _votes_for_leaves(trees: Trees) -> bool:
    """Return whether a single tree has its leaf indices as classes."""
    leaves = np.arange(len(trees.leaf_nodes))
    return (
        len(trees.tree_ids) == 1
        and int(trees.used.sum()) == len(leaves)
        and trees.leaf_nodes.max() < trees.used.shape[1]
        and bool(trees.used[leaves, trees.leaf_nodes].all())
    )


def scores_of_leaves(
    fused: Fused, trees: Trees, base: np.ndarray | None, aggregate: str = "SUM"
) -> str | None:
    """Append the aggregated values of leaves, of shape (n, n_outputs); return None if not supported."""
    # The fused operator returns leaf indices. A forest is linear in the table of leaf values
    # (Ren, Cao, Wei and Sun, "Global refinement of random forest", CVPR 2015, section 3).
    op, n_trees, n_outputs = fused.op, len(trees.tree_ids), trees.values.shape[1]
    several, values = n_outputs > 1, trees.values
    if len(values) > MAX_LEAVES or (several and aggregate in ("MIN", "MAX")):
        return None
    outputs = trees.output_of_trees() if several else np.zeros(n_trees, dtype=np.int64)
    if outputs is not None:  # one value for each leaf
        values = values[np.arange(len(values)), outputs[trees.leaf_trees]]
    reached = op.Gather(fused.weight(STEM, values), _leaf_indices(fused, trees), axis=0)
    if aggregate in ("MIN", "MAX"):
        total = reduced(op, AGGREGATES[aggregate], reached, 1)
    elif several and outputs is not None:
        # cast from integers, since float operands of products are recognised as weights
        adds_to = np.equal.outer(outputs, np.arange(n_outputs)).astype(np.int32)
        total = op.MatMul(reached, op.Cast(adds_to, to=TensorProto.FLOAT))
    else:
        total = op.ReduceSum(reached, [1], keepdims=0 if several else 1)
    total = op.Div(total, float(n_trees)) if aggregate == "AVERAGE" else total
    return total if base is None else op.Add(total, fused.weight("base_values", base))


def _leaf_indices(fused: Fused, trees: Trees) -> str:
    """Append the index in the table of the leaf of each sample in each tree: int64, (n, n_trees)."""
    op, x, n_trees = fused.op, fused.node.input[0], len(trees.tree_ids)
    known = op.type(x)
    is_double = known is not None and known.elem_type == TensorProto.DOUBLE
    route = op.node(
        "TreeEnsembleRegressor",
        x if is_double else fused.float_input(),  # float64 is compared in float64
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        post_transform="NONE",
        n_targets=n_trees,
        target_ids=trees.leaf_trees.tolist(),
        target_nodeids=trees.leaf_nodes.tolist(),
        target_treeids=trees.tree_ids[trees.leaf_trees].tolist(),
        target_weights=np.arange(len(trees.values), dtype=float).tolist(),
    )
    for attribute in trees.routing:
        op.add_attribute(attribute)
    # onnx does not infer the shape of the first version of the operator.
    return op.Reshape(op.Cast(route, to=TensorProto.INT64), [-1, n_trees])
