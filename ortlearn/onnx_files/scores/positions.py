"""Find scores of more than two dimensions, as of pixels or time steps."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...exceptions import ConversionError, limit_address
from ...graphs.nodes import attribute
from ...models import Positions, Scores
from ...models.parameters import Parameter
from .outputs import probability_output, split_outputs
from .score_view import ScoreView

LabelShape = tuple[int, ...] | None  # shape of y; None without labels


class _Link(NamedTuple):
    """Raw scores with the shape of an output, the function of probabilities, and the axis of classes."""

    raw: str
    link: str | None = None
    axis: int | None = None


def position_classes(view: ScoreView, weights: Mapping[str, Parameter], labels: LabelShape) -> Scores:
    """Return the scores of a classifier of positions, of shape (n, n_positions, k)."""
    # The axis of classes is that of Softmax, or that of ArgMax for labels, or the first one after the samples
    # that y lacks.
    floats, others = split_outputs(view)
    output, label = probability_output(view, floats, None, weights), others[0] if others else None
    found, sizes = _find_link(view, output), view.sample_shape(output)
    axis = found.axis if found.axis is not None else _argmax_axis(view, label, len(sizes) + 1)
    if axis is None:
        axis = _missing_axis(sizes, labels)
    n_classes = 1 if axis is None else sizes[axis - 1]
    if n_classes is None:
        raise ConversionError(
            f"Output {output!r} has the shape {view.op.shape(output)}, with an unknown number of classes on "
            f"axis {axis}: export the model with a fixed one.{limit_address('unknown-scores')}"
        )
    link = found.link or ("softmax" if n_classes > 1 else "sigmoid")
    rest = [number for number in range(1, len(sizes) + 1) if number != axis]
    positions = Positions(tuple(sizes[number - 1] for number in rest), axis)
    score = found.raw
    if n_classes > 1 and axis != len(sizes):
        order = [0, *rest, axis]
        score = view.append("Transpose", score, columns=[*positions.shape, n_classes], perm=order)
    score = view.append("Reshape", score, [0, -1, n_classes], columns=(positions.count, n_classes))
    outputs = {"label": label, "probabilities": output if found.link else found.raw, "decision": found.raw}
    return view.scores("classification", score, n_classes, link, positions=positions, **outputs)


def _find_link(view: ScoreView, name: str) -> _Link:
    """Return the scores before a softmax or a sigmoid, transposed and reshaped as the probabilities are."""
    name = view.origin(name)
    node, rank = view.producers.get(name), len(view.op.shape(name) or ())
    if node is None or node.domain not in ("", "ai.onnx"):
        return _Link(name)
    if node.op_type == "Softmax" and rank:
        return _Link(view.origin(node.input[0]), "softmax", attribute(node, "axis", -1) % rank)
    if node.op_type == "Sigmoid":
        return _Link(view.origin(node.input[0]), "sigmoid")
    before = _find_link(view, node.input[0]) if node.op_type in ("Transpose", "Reshape") else _Link(name)
    if before.link is None:
        return _Link(name)
    raw = view.append_copy(node, {node.input[0]: before.raw})[node.output[0]]
    return _Link(raw, before.link, _axis_after(view, node, before.axis))


def _axis_after(view: ScoreView, node: Any, axis: int | None) -> int | None:
    """Return the position of an axis after a Transpose, or a Reshape that keeps the last axis."""
    if axis is None:
        return None
    old, new = view.op.shape(node.input[0]) or (), view.op.shape(node.output[0]) or ()
    if node.op_type == "Transpose":
        order = attribute(node, "perm") or list(range(len(old)))[::-1]
        return list(order).index(axis)
    if axis == len(old) - 1 and isinstance(old[-1], int) and old[-1] == new[-1]:
        return len(new) - 1
    raise ConversionError(
        f"Probabilities of shape {old} are reshaped to {new} (node {node.name!r}), which makes the axis of "
        "classes unknown. Export the model without this Reshape, or with scores as output."
    )


def _argmax_axis(view: ScoreView, label: str | None, rank: int) -> int | None:
    """Return the axis of the ArgMax that computes labels, None without one."""
    node = None if label is None else view.producer(label, "ArgMax", passing=("Cast", "Identity", "Squeeze"))
    return None if node is None else attribute(node, "axis", 0) % rank


def _missing_axis(sizes: Sequence[int | None], labels: LabelShape) -> int | None:
    """Return the axis of scores that labels lack, None for equal shapes."""
    rank, known = len(sizes) + 1, [number for number, size in enumerate(sizes, 1) if size is not None]
    if labels is None:
        return known[0] if known else 1
    if len(labels) == rank and Positions(tuple(sizes)).fits(labels):
        return None
    for axis in known:
        if Positions((*sizes[: axis - 1], *sizes[axis:]), axis).fits(labels):
            return axis
    raise ConversionError(
        f"Scores of shape (n, {', '.join(map(str, sizes))}) do not match y of shape {labels}: pass y with "
        "the shape of the scores without the axis of classes, such as (n, h, w) for scores (n, k, h, w)."
    )
