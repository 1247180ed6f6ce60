"""TreeEnsembleRegressor and TreeEnsembleClassifier: look-ups of trainable leaf values, sums and a link."""

from dataclasses import dataclass, field, replace

import numpy as np
from onnx import AttributeProto, TensorProto

from ...models.distances import reduced
from ...models.trees.nodes import MAX_LEAVES
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


STEM = "leaf_values"  # of the name of the table
#: Reductions over trees by aggregate function.
AGGREGATES = {"SUM": "ReduceSum", "AVERAGE": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}
ROUNDING = 1e-3  # tolerance of sums of probabilities
TINY = 1e-30  # added to probabilities: all zeros become equal ones


def tree_regressor(fused: Fused, may_number: bool = True) -> bool:
    """Write a regression by trees as sums of trainable leaf values."""
    n_targets = int(fused.attribute("n_targets", 1))
    aggregate = fused.text("aggregate_function", "SUM", AGGREGATES)
    trees, base = read_trees(fused, "target", n_targets), base_values(fused, n_targets)
    # a tree that returns the numbers of its leaves has nothing to learn
    numbers = len(trees.tree_ids) == 1 and np.array_equal(trees.values, trees.leaf_nodes[:, None])
    scores = None if numbers and may_number else _scores(fused, trees, base, aggregate)
    return scores is not None and fused.give(fused.linked(scores, n_targets))


def tree_classifier(fused: Fused) -> bool:
    """Write a classification by trees as sums of trainable leaf values, probabilities and a label."""
    # Two classes whose leaves have one value each have one column of scores s. Without negative values, s is
    # the probability of the second class, as of forests: (1 - s, s). Otherwise it is a raw score, as of
    # boosting: (-s, s), with a sigmoid if the operator has one, where onnxruntime compares s with 1/2 and
    # release 1.19.2 omits the sigmoid if no value is negative. Probabilities of forests are clipped at zero
    # and normalised.
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
    first_leaves = np.unique(trees.leaf_trees, return_index=True)[1]
    most = np.maximum.reduceat(trees.values.sum(axis=1), first_leaves).sum()
    if is_binary:
        raw = op.Concat(op.Sub(1.0, raw), raw, axis=1)
    are_shares = most <= 1 + ROUNDING and (is_binary or (most >= 1 - ROUNDING and positive))
    fused.give_label(classes, raw)
    if are_shares and link == "NONE" and base is None:
        present = op.Add(op.Max(raw, 0.0), TINY)
        raw = op.Div(present, op.ReduceSum(present, [1]))
    return fused.give_scores(raw, link)


def _votes_for_leaves(trees: Trees) -> bool:
    """Return whether classes are the leaves of a single tree, which has nothing to learn."""
    leaves = np.arange(len(trees.leaf_nodes))
    return (
        len(trees.tree_ids) == 1
        and int(trees.used.sum()) == len(leaves)
        and trees.leaf_nodes.max() < trees.used.shape[1]
        and bool(trees.used[leaves, trees.leaf_nodes].all())
    )


def _scores(fused: Fused, trees: Trees, base: np.ndarray | None, aggregate: str = "SUM") -> str | None:
    """Append the aggregated values of leaves, of shape (n, n_outputs), or return None if not possible."""
    # The fused operator returns the numbers of leaves; their values are a table, in which a forest is linear
    # (Ren, Cao, Wei and Sun, "Global refinement of random forest", CVPR 2015, section 3).
    op, n_trees, n_outputs = fused.op, len(trees.tree_ids), trees.values.shape[1]
    several, values = n_outputs > 1, trees.values
    if len(values) > MAX_LEAVES or (several and aggregate in ("MIN", "MAX")):
        return None
    outputs = trees.output_of_trees() if several else np.zeros(n_trees, dtype=np.int64)
    if outputs is not None:  # one number for each leaf is enough
        values = values[np.arange(len(values)), outputs[trees.leaf_trees]]
    reached = op.Gather(fused.weight(STEM, values), _leaf_numbers(fused, trees), axis=0)
    if aggregate in ("MIN", "MAX"):
        total = reduced(op, AGGREGATES[aggregate], reached, 1)
    elif several and outputs is not None:
        # a constant of integers, cast: products with floats are recognised as weights
        adds_to = np.equal.outer(outputs, np.arange(n_outputs)).astype(np.int32)
        total = op.MatMul(reached, op.Cast(adds_to, to=TensorProto.FLOAT))
    else:
        total = op.ReduceSum(reached, [1], keepdims=0 if several else 1)
    total = op.Div(total, float(n_trees)) if aggregate == "AVERAGE" else total
    return total if base is None else op.Add(total, fused.weight("base_values", base))


def _leaf_numbers(fused: Fused, trees: Trees) -> str:
    """Return the row in the table of the leaf of each sample in each tree: int64, (n, n_trees)."""
    op, x, n_trees = fused.op, fused.node.input[0], len(trees.tree_ids)
    known = op.type(x)
    is_double = known is not None and known.elem_type == TensorProto.DOUBLE
    route = op.node(
        "TreeEnsembleRegressor",
        x if is_double else fused.float_input(),  # float64 is compared as it is
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
    # onnx infers no shape of the operator's first version.
    return op.Reshape(op.Cast(route, to=TensorProto.INT64), [-1, n_trees])
