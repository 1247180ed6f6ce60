"""Ensembles of trees with smoothed thresholds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ..exceptions import GradientError
from ..graphs import GraphBuilder, initializer_arrays, value_types
from ..graphs.output_shapes import with_computed_shapes
from ..models.fusion import computes, replace_tensors
from ..models.trees.nodes import FusedTrees, Nodes
from .sources import Source

__all__ = ["smoothed", "trees_of_source"]

#: Distance from a threshold, in widths, of missing values.
FAR = 1e4


def trees_of_source(source: Source) -> list[FusedTrees]:
    """Return the ensembles of trees in a graph."""
    forms = [form for form in source.fused if isinstance(form, FusedTrees)]
    return [form for form in forms if computes(source.model, form.numbers)]


def smoothed(source: Source, smooth: Any) -> Source:
    """Return a source in which each comparison of a tree is a sigmoid of its distance in widths.

    The value of an ensemble is the sum over leaves of their value times the product of the sigmoids on the
    path to it, as in soft decision trees (Irsoy, Yildiz and Alpaydin, ICPR 2012) with given splits.
    """
    forms, widths = trees_of_source(source), np.asarray(smooth, dtype=np.float64)
    if not forms or not all(form.sums and computes(source.model, form.sums) for form in forms):
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
    values = initializer_arrays(model, (form.table, form.base))[form.table]
    cast = producers.get(samples)
    if cast is not None and cast.op_type == "Cast" and types[cast.input[0]].elem_type == TensorProto.DOUBLE:
        samples = cast.input[0]  # rounding to float32 is not smooth
    elem_type = TensorProto.DOUBLE if values.dtype == np.float64 else TensorProto.FLOAT
    nodes, split = form.nodes, ~form.nodes.is_leaf
    features = nodes.feature[split]
    if widths.ndim and features.max(initial=0) >= len(widths):
        raise ValueError(
            f"smooth has {len(widths)} widths, but the trees read {features.max() + 1} features."
        )
    width = widths[features] if widths.ndim else np.full(len(features), widths)

    def write(op: GraphBuilder) -> None:
        def number(value: Any) -> str:
            return op.constant(np.asarray(value, dtype=values.dtype))

        x = op.Gather(op.Transpose(op.Cast(samples, to=elem_type), perm=[1, 0]), features, axis=0)
        distance = op.Div(op.Sub(x, number(nodes.threshold[split][:, None])), number(width[:, None]))
        missing = number(np.where(nodes.missing_left[split], -FAR, FAR)[:, None])
        right = op.Sigmoid(op.Where(op.IsNaN(x), missing, distance))
        left = op.Sub(number(1.0), right)
        shares, order = _shares_of_leaves(op, nodes, op.Concat(left, right, axis=0), number)
        table = op.Reshape(op.Gather(form.table, order, axis=0), [len(order), -1])
        if values.ndim == 1 and form.n_scores > 1:  # the tree i adds to the score i % n_scores
            trees = np.repeat(np.arange(len(nodes.sizes)), nodes.sizes)[nodes.is_leaf]
            table = op.Mul(table, number(np.eye(form.n_scores)[trees % form.n_scores][order]))
        sums = op.MatMul(op.Transpose(shares, perm=[1, 0]), table)
        if values.ndim > 2:
            sums = op.Reshape(sums, [-1, *values.shape[1:]])
        op.node("Add", sums, form.base or number(0.0), outputs=[form.sums])

    return replace_tensors(model, [form.sums], write)


def _shares_of_leaves(op: GraphBuilder, nodes: Nodes, sides: str, number: Any) -> tuple[str, np.ndarray]:
    """Return the shares of samples that reach each leaf, (n_leaves, n), and the leaf of each share.

    ``sides`` are the shares that go left in each split, followed by those that go right.
    """
    offsets = np.repeat(np.cumsum(nodes.sizes) - nodes.sizes, nodes.sizes)
    left, right = nodes.left + offsets, nodes.right + offsets
    split_number, leaf_number = np.cumsum(~nodes.is_leaf) - 1, np.cumsum(nodes.is_leaf) - 1
    n_splits, leaves, parts = int((~nodes.is_leaf).sum()), [], []
    level = np.cumsum(nodes.sizes) - nodes.sizes  # the roots
    share = op.Add(op.Mul(op.Gather(sides, [0] * len(level), axis=0), number(0.0)), number(1.0))
    while len(level):
        is_leaf = nodes.is_leaf[level]
        if is_leaf.any():
            leaves.append(leaf_number[level[is_leaf]])
            parts.append(op.Gather(share, np.flatnonzero(is_leaf), axis=0))
        kept = np.flatnonzero(~is_leaf)
        if not len(kept):
            break
        own = split_number[level[kept]]
        turns = op.Gather(sides, np.concatenate([own, own + n_splits]), axis=0)
        share = op.Mul(op.Gather(share, np.tile(kept, 2), axis=0), turns)
        level = np.concatenate([left[level[kept]], right[level[kept]]])
    return op.Concat(*parts, axis=0) if len(parts) > 1 else parts[0], np.concatenate(leaves)
