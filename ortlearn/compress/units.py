"""Fewer units of networks, and fewer channels of convolutions: importance, removal, training in between."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from ..differentiation import gradient_of_loss
from ..exceptions import ConversionError
from ..graphs import initializer_arrays
from ..onnx_files.loading import is_onnx_source, load_onnx
from ..runtime.deployment import deployed_session
from ..trainable.conversion import to_trainable
from .channels import Channels, find_channels, without_channels
from .files import File, label_columns
from .lessons import Answers, Lesson
from .objectives import LOSS, ScoreGraph, Term
from .teachers import Teachers

__all__ = ["fewer_units", "importance", "units"]

#: Samples of a batch of the importance; weight of the answers of the whole network in the training.
BATCH, ALPHA = 50, 0.5


def units(model: Any) -> str:
    """Return the numbers of units of each hidden layer, or of channels."""
    if is_onnx_source(model):
        return ", ".join(str(group.count) for group in find_channels(load_onnx(model))[0])
    return ", ".join(str(coef.shape[1]) for coef in model.coefs_[:-1])


def fewer_units(model: Any, X: Any, y: Any, share: float, options: Mapping[str, Any]) -> Any:
    """Remove units in steps, and train after each, on labels and on answers of the whole network."""
    options = dict(options)
    steps = options.pop("steps")
    teachers = Teachers([model], X, y)
    is_file = is_onnx_source(model)
    model = load_onnx(model) if is_file else model
    forced = "classification" if is_file and teachers.classes is not None else None
    own, total = teachers.answers(X), 0
    for step in range(1, steps + 1):
        trainable = to_trainable(model, X=None if is_file else X, forced_task=forced)
        graph = ScoreGraph.of(trainable)
        groups, others = find_channels(graph.model)
        if not groups:
            reason = others or "it has no product or convolution with stored weights; distil it instead"
            raise ConversionError(f"The network has no units or channels that can be removed: {reason}.")
        total = total or sum(group.count for group in groups)
        left = max(len(groups), round(total * (1 - share * step / steps)))
        kept = _most_important(importance(graph, groups, X, y), left)
        small = _without(model, groups, kept)
        lesson = Lesson(teachers, small, 1.0, 0.0, options)
        fitted, file, _ = lesson.taught(
            X, Answers(own, label_columns(y, teachers.classes), teachers.answers, ALPHA)
        )
        model = file if fitted is None else fitted
    return model


def importance(graph: ScoreGraph, groups: Sequence[Channels], X: Any, y: Any) -> list[np.ndarray]:
    """Return the first-order importance of the channels of each layer, divided by its norm.

    It is the sum over batches of ``(sum of g * w) ** 2``, over the weights w into a channel with gradients g.
    """
    wanted = [part.name for group in groups for part in group.into]
    loss = graph.with_loss(graph.model, [Term()])
    loss.graph.output.pop(0)
    session = deployed_session(gradient_of_loss(loss, LOSS, wanted))
    feeds = File(graph.model).feeds(X)
    targets = graph.one_hot(y, graph.classes).astype(np.float32)
    values = initializer_arrays(loss, wanted)
    inputs = {value.name for value in session.get_inputs()}
    totals = [np.zeros(group.count) for group in groups]
    for start in range(0, len(targets), BATCH):
        batch = slice(start, start + BATCH)
        given = {name: array[batch] for name, array in feeds.items()} | values | {"label": targets[batch]}
        found = session.run(
            [f"{name}_grad" for name in wanted], {n: a for n, a in given.items() if n in inputs}
        )
        products = {name: gradient * values[name] for name, gradient in zip(wanted, found, strict=True)}
        for total, group in zip(totals, groups, strict=True):
            parts = [np.moveaxis(products[part.name], part.axis, 0) for part in group.into]
            total += np.square(sum(part.reshape(group.count, -1).sum(axis=1) for part in parts))
    return [total / max(float(np.linalg.norm(total)), 1e-30) for total in totals]


def _most_important(importance: Sequence[np.ndarray], left: int) -> list[np.ndarray]:
    """Return the indices of the most important channels of all layers, at least one of each."""
    least = np.sort(np.concatenate(importance))[::-1][left - 1]
    return [np.flatnonzero((values >= least) | (values == values.max())) for values in importance]


def _without(model: Any, groups: Sequence[Channels], kept: Sequence[np.ndarray]) -> Any:
    """Return a copy of a file or an estimator with some of its channels."""
    if isinstance(model, ModelProto):
        return without_channels(model, groups, kept)
    model = copy.deepcopy(model)
    for i, own in enumerate(kept):
        model.coefs_[i], model.intercepts_[i] = model.coefs_[i][:, own], model.intercepts_[i][own]
        model.coefs_[i + 1] = model.coefs_[i + 1][own]
    return model.set_params(hidden_layer_sizes=tuple(len(own) for own in kept))
