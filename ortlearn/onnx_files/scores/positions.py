"""Scores of more than two dimensions: of each pixel, time step or element of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...exceptions import ConversionError
from ...graphs.nodes import attribute
from ...models import Positions, Scores
from ...models.weight import Weight
from .graph_end import GraphEnd
from .outputs import probability_output, split_outputs

#: Shape of the labels of all samples; None where there are none yet.
LabelShape = tuple[int, ...] | None


class _Link(NamedTuple):
    """Raw scores in the layout of an output, what makes probabilities of them, and the axis of its sums."""

    raw: str
    link: str | None
    axis: int | None


def has_positions(end: GraphEnd, name: str) -> bool:
    """Return whether a tensor has more than two dimensions."""
    return len(end.op.shape(name) or ()) > 2


def position_values(end: GraphEnd, output: str, link: str) -> Scores:
    """Return the scores of a regressor, the elements of an output as columns of shape (n, elements).

    With a log link the scores are what an Exp at the end of the graph takes; one is appended where there is
    none.
    """
    sizes, score = _sizes(end, output), output
    if link == "log":
        power = end.producer(output, "Exp")
        if power is None:
            score = end.replace_output(output, columns=sizes)
            end.op.node("Identity", end.op.Exp(score), outputs=[output])
        else:
            score = power.input[0]
    positions = Positions(sizes, apart=False)
    flat = end.shaped("Reshape", score, [0, -1], shape=(positions.count,))
    return _scores(end, "regression", flat, positions.count or 0, link, positions, prediction=output)


def position_classes(end: GraphEnd, weights: Mapping[str, Weight], labels: LabelShape) -> Scores:
    """Return the scores of a classifier of positions, of shape (n, positions, k).

    The axis of the classes is that of a Softmax, or of the ArgMax of an output of labels, or the one without
    which scores have the shape of the labels, the second one first, as torch has it.
    """
    floats, others = split_outputs(end)
    output, label = probability_output(end, floats, None, weights), others[0] if others else None
    found, sizes = _find_link(end, output), _sizes(end, output)
    axis = found.axis if found.axis is not None else _argmax_axis(end, label, len(sizes) + 1)
    if axis is None:
        axis = _axis_beside(sizes, labels)
    n_classes = 1 if axis is None else sizes[axis - 1]
    if n_classes is None:
        raise ConversionError(
            f"Output {output!r} has the shape {end.op.shape(output)}: the number of classes, its dimension "
            f"{axis}, must be known to train it. Export the model with a fixed one."
        )
    link = found.link or ("softmax" if n_classes > 1 else "sigmoid")
    rest = [number for number in range(1, len(sizes) + 1) if number != axis]
    positions = Positions(tuple(sizes[number - 1] for number in rest), axis)
    score = found.raw
    if n_classes > 1 and axis != len(sizes):
        order = [0, *rest, axis]
        score = end.shaped("Transpose", score, shape=[*positions.shape, n_classes], perm=order)
    score = end.shaped("Reshape", score, [0, -1, n_classes], shape=(positions.count, n_classes))
    outputs = {"label": label, "probabilities": output if found.link else found.raw, "decision": found.raw}
    return _scores(end, "classification", score, n_classes, link, positions, **outputs)


def _scores(
    end: GraphEnd, task: str, score: str, n_outputs: int, link: str, positions: Positions, **outputs: Any
) -> Scores:
    dtype = np.dtype(np.float64 if end.op.dtype(score) == np.float64 else np.float32)
    return Scores(task, score, n_outputs, link, dtype=dtype, positions=positions, **outputs)


def _sizes(end: GraphEnd, name: str) -> tuple[int | None, ...]:
    """Return the dimensions of a tensor after the first, None where they are not known."""
    shape = end.op.shape(name) or ()
    return tuple(size if isinstance(size, int) else None for size in shape[1:])


def _find_link(end: GraphEnd, name: str) -> _Link:
    """Return the scores before a softmax or a sigmoid, which may have been transposed or reshaped."""
    name = end.origin(name)
    node = end.producers.get(name)
    if node is None or node.domain not in ("", "ai.onnx"):
        return _Link(name, None, None)
    rank = len(end.op.shape(name) or ())
    if node.op_type == "Softmax" and rank:
        return _Link(end.origin(node.input[0]), "softmax", attribute(node, "axis", -1) % rank)
    if node.op_type == "Sigmoid":
        return _Link(end.origin(node.input[0]), "sigmoid", None)
    if node.op_type not in ("Transpose", "Reshape"):
        return _Link(name, None, None)
    before = _find_link(end, node.input[0])
    if before.link is None:
        return _Link(name, None, None)
    raw = end.append_copy(node, {node.input[0]: before.raw})[node.output[0]]
    return _Link(raw, before.link, _axis_after(end, node, before.axis))


def _axis_after(end: GraphEnd, node: Any, axis: int | None) -> int | None:
    """Return where an axis is after a Transpose, or after a Reshape that keeps the last one."""
    if axis is None:
        return None
    old, new = end.op.shape(node.input[0]) or (), end.op.shape(node.output[0]) or ()
    if node.op_type == "Transpose":
        order = attribute(node, "perm") or list(range(len(old)))[::-1]
        return list(order).index(axis)
    if axis == len(old) - 1 and isinstance(old[-1], int) and old[-1] == new[-1]:
        return len(new) - 1
    raise ConversionError(
        f"Probabilities of shape {old} are reshaped to {new} (node {node.name!r}): which axis has the "
        "classes is not known. Export the model without this Reshape, or with scores for its output."
    )


def _argmax_axis(end: GraphEnd, label: str | None, rank: int) -> int | None:
    """Return the axis over which the labels are chosen; None where they are not."""
    node = None if label is None else end.producer(label, "ArgMax", passing=("Cast", "Identity", "Squeeze"))
    return None if node is None else attribute(node, "axis", 0) % rank


def _axis_beside(sizes: Sequence[int | None], labels: LabelShape) -> int | None:
    """Return the axis of scores that labels lack; None if they have all."""
    rank, known = len(sizes) + 1, [number for number, size in enumerate(sizes, 1) if size is not None]
    if labels is None:
        return known[0] if known else 1
    if len(labels) == rank and Positions(tuple(sizes)).fits(labels):
        return None
    for axis in known:
        if Positions((*sizes[: axis - 1], *sizes[axis:]), axis).fits(labels):
            return axis
    raise ConversionError(
        f"The model has scores of shape (n, {', '.join(map(str, sizes))}), and y has the shape {labels}: for "
        "classes, y has a label in the place of each vector of scores along one axis, such as (n, h, w) for "
        "scores (n, k, h, w)."
    )
