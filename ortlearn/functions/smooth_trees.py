"""Ensembles of trees with smoothed thresholds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..exceptions import GradientError
from ..graphs import GraphBuilder, extract_model, value_types
from ..graphs.editing import with_fields
from ..graphs.nodes import attribute
from ..graphs.output_shapes import with_computed_shapes
from ..models.fusion import FusedGraph
from ..models.trees.nodes import FusedTrees, Nodes
from ..runtime.graph_run import run_graph
from .sources import Source

__all__ = ["smoothed", "trees_of_source"]

#: Value of a missing feature in splits that send it right; its negative in others.
FAR = 1e30
#: Operators of which, with constants as other inputs, columns are multiples of features.
SCALING = {"Identity", "Cast", "Add", "Sub", "Mul", "Div", "Gather"}


def trees_of_source(source: Source) -> list[FusedTrees]:
    """Return the ensembles of trees in a graph."""
    forms = [form for form in source.fused if isinstance(form, FusedTrees)]
    graph = FusedGraph(source.model)
    return [form for form in forms if graph.computes(form.numbers)]


def smoothed(source: Source, smooth: Any) -> Source:
    """Return a source in which each comparison of a tree is a sigmoid of its distance in widths.

    The value of an ensemble is the sum over leaves of their value times the product of the sigmoids on the
    path to it, as in soft decision trees (Irsoy, Yildiz and Alpaydin, ICPR 2012) with given splits.
    """
    forms, widths = trees_of_source(source), np.asarray(smooth, dtype=np.float64)
    graph = FusedGraph(source.model)
    if not forms or not all(graph.computes(form.sums) for form in forms):
        raise GradientError(
            f"smooth={smooth!r}: {source.name} has no ensemble of trees whose leaves are summed. Use "
            "smooth=None."
        )
    if widths.ndim > 1 or not (np.isfinite(widths).all() and (widths > 0).all()):
        raise ValueError(f"smooth={smooth!r} must be a positive number, or one for each feature.")
    model = source.model
    for form in forms:
        model = _with_smooth_sums(model, form, widths)
    return replace(source, model=with_computed_shapes(model), fused=(), exact=source.model)


def _with_smooth_sums(model: ModelProto, form: FusedTrees, widths: np.ndarray) -> ModelProto:
    """Return a graph in which the sums of leaf values of an ensemble are smooth."""
    producers = {name: node for node in model.graph.node for name in node.output}
    samples, types = form.samples, value_types(model)
    graph = FusedGraph(model)
    values, _ = form.values(graph)
    cast = producers.get(samples)
    if cast is not None and cast.op_type == "Cast" and types[cast.input[0]].elem_type == TensorProto.DOUBLE:
        samples = cast.input[0]  # rounding to float32 is not smooth
    elem_type = TensorProto.DOUBLE if values.dtype == np.float64 else TensorProto.FLOAT
    levels = _levels(form.nodes)
    if not levels.sizes:
        return model
    features = form.nodes.feature[levels.splits]
    width = _widths(extract_model(model, [samples]), samples, widths, int(features.max()) + 1)[features]
    thresholds, missing_left = form.nodes.threshold[levels.splits], form.nodes.missing_left[levels.splits]
    used, places = np.unique(features, return_inverse=True)
    leaves = (np.cumsum(form.nodes.is_leaf) - 1)[levels.leaves]

    def write(op: GraphBuilder) -> None:
        def number(value: Any) -> str:
            return op.constant(np.asarray(value, dtype=values.dtype))

        columns = op.Gather(op.Transpose(op.Cast(samples, to=elem_type), perm=[1, 0]), used, axis=0)
        sides = [op.Where(op.IsNaN(columns), number(far), columns) for far in (FAR, -FAR)]
        x = op.Gather(op.Concat(*sides, axis=0), places + len(used) * missing_left, axis=0)
        distance = op.Div(op.Sub(number(thresholds[:, None]), x), number(width[:, None]))
        shares = _shares_of_leaves(op, levels, op.Sigmoid(distance), number)
        table = op.Concat(*form.tables, axis=0) if len(form.tables) > 1 else form.tables[0]
        table = op.Reshape(op.Gather(table, leaves, axis=0), [len(leaves), -1])
        if values.ndim == 1 and form.n_scores > 1:  # the tree i adds to the score i % n_scores
            trees = form.nodes.trees[levels.leaves]
            table = op.Mul(table, number(np.eye(form.n_scores)[trees % form.n_scores]))
        sums = op.Transpose(op.MatMul(op.Transpose(table, perm=[1, 0]), shares), perm=[1, 0])
        if values.ndim > 2:
            sums = op.Reshape(sums, [-1, *values.shape[1:]])
        op.node("Add", sums, form.base or number(0.0), outputs=[form.sums])

    graph.replace([form.sums], write)
    return graph.to_model()


def _widths(steps: ModelProto, samples: str, widths: np.ndarray, n_read: int) -> np.ndarray:
    """Return the widths of the columns of ``samples``, scaled by steps that only scale features."""
    constants = {tensor.name for tensor in steps.graph.initializer}
    (x, *others), nodes = steps.graph.input, []
    scales = not others
    for node in steps.graph.node:
        scales &= node.op_type in SCALING and constants.isdisjoint(node.input[:1])
        scales &= constants.issuperset(node.input[1:])
        scales &= node.op_type != "Gather" or attribute(node, "axis", 0) == 1
        shifts = node.op_type in ("Add", "Sub")
        nodes.append(helper.make_node("Identity", node.input[:1], node.output) if shifts else node)
    types = value_types(steps)
    size = (types[x.name if scales else samples].shape or (None,))[-1]
    size = size if isinstance(size, int) else max(widths.size, n_read)
    if widths.ndim and len(widths) != size:
        read = "X has" if scales else "the steps before the trees make"
        raise ValueError(f"smooth has {len(widths)} widths, but {read} {size} columns.")
    row = np.broadcast_to(widths, (1, size))
    if not (scales and nodes):
        return row[0]
    dtype = helper.tensor_dtype_to_np_dtype(types[x.name].elem_type)
    return np.abs(run_graph(with_fields(steps, node=nodes), {x.name: row.astype(dtype)})[0])


class Levels(NamedTuple):
    """The nodes of all trees by depth: in each level the splits, then the leaves."""

    splits: np.ndarray  # nodes
    leaves: np.ndarray  # nodes
    sizes: list[int]  # number of splits of each level that has some
    orders: list[np.ndarray]  # position of each node of a level among the left, then the right children


def _levels(nodes: Nodes) -> Levels:
    """Return the nodes of an ensemble by depth."""
    children, level, splits, leaves, orders = nodes.children, nodes.roots, [], [], []
    while len(level):
        orders.append(np.argsort(nodes.is_leaf[level], kind="stable"))
        level = level[orders[-1]]
        is_leaf = nodes.is_leaf[level]
        leaves.append(level[is_leaf])
        splits.append(level[~is_leaf])
        level = np.concatenate([own[splits[-1]] for own in children])
    return Levels(
        np.concatenate(splits), np.concatenate(leaves), [len(part) for part in splits if len(part)], orders
    )


def _shares_of_leaves(op: GraphBuilder, levels: Levels, left: str, number: Any) -> str:
    """Return the shares of samples that reach each leaf, (n_leaves, n), in the order of ``levels``.

    ``left`` are the shares that go left in each split.
    """
    sizes, ends = levels.sizes, []
    lefts = op.Split(left, sizes, axis=0, n_outputs=len(sizes)) if len(sizes) > 1 else [left]
    n_constant = len(levels.orders[0]) - sizes[0]
    if n_constant:  # trees without splits
        ends.append(
            op.Expand(number(1.0), op.Concat([n_constant], op.Slice(op.Shape(left), [1], [2]), axis=0))
        )
    share = ""
    for depth, own in enumerate(lefts):
        own = op.Mul(share, own) if share else own
        share = op.Gather(
            op.Concat(own, op.Sub(share or number(1.0), own), axis=0), levels.orders[depth + 1], axis=0
        )
        count = sizes[depth + 1] if depth + 1 < len(sizes) else 0
        n_ends = 2 * sizes[depth] - count
        if count and n_ends:
            share, end = op.Split(share, [count, n_ends], axis=0, n_outputs=2)
        else:
            end = share
        ends += [end] if n_ends else []
    return op.Concat(*ends, axis=0) if len(ends) > 1 else ends[0]
