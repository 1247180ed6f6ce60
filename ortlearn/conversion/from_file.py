"""Convert an ONNX graph into one that can be trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onnx import ModelProto

from ..graphs import graph_names, map_names, name_nodes, value_types
from ..onnx_files.scores import attach_scores
from ..onnx_files.versions import with_free_rows
from ..onnx_files.weights import find_weights
from ..preprocessing.schema import graph_inputs, schema_of_graph
from .selection import select_weights, with_trained_weights
from .trainable_model import Entry, OwnLoss, TrainableModel
from .weight_names import renamed_weights

__all__ = ["trainable_from_graph"]

#: How the names begin that training graphs add to a model.
RESERVED = "ortlearn_"


def trainable_from_graph(
    model: ModelProto,
    weights_to_train: Any,
    *,
    own_loss_names: tuple[str, str, str] = ("loss", "label", "sample_weight"),
    task: str | None = None,
    link: str = "identity",
    origin: str | None = None,
    fitted: Any = None,
) -> TrainableModel:
    """Return a graph that can be trained, its weights found by the operators that read them.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph without fused operators.
    weights_to_train : str, sequence of str or None
        Names or glob patterns.
    own_loss_names : tuple of str
        Output and input that make a graph one with its own loss, and the input with weights of samples.
    task : {"regression", "classification"}, default=None
        What the graph is for; by default its outputs decide.
    link : {"identity", "log"}, default="identity"
        What the scores of a regressor are to be of its predictions.
    origin : str, default=None
        Name of the estimator or step that is trained.
    fitted : estimator, default=None
        What was converted.

    Returns
    -------
    TrainableModel
        Graph, weights and scores.
    """
    model, reserved = _without_reserved_names(with_free_rows(model))
    model, original_names = renamed_weights(name_nodes(model))
    original_names = {new: reserved.get(old, old) for new, old in original_names.items()}
    types, weights = value_types(model), find_weights(model)
    if weights_to_train is not None:
        asked = select_weights(weights, weights_to_train, original_names)
        weights = {name: replace(w, learned=name in asked or w.learned) for name, w in weights.items()}
    scores, own_loss = None, _own_loss(model, *own_loss_names)
    if own_loss is None:
        model, scores = attach_scores(model, types, weights, task, link)
    others = (own_loss.label, own_loss.row_weight) if own_loss else (None, None)
    candidate = TrainableModel(
        model=model,
        entry=Entry(schema_of_graph(graph_inputs(model, types, *others))),
        head=scores,
        weights=weights,
        trained=[],
        original_names=original_names,
        own_loss=own_loss,
        origin=origin,
        reserved_names=reserved,
        link=link,
    )
    return with_trained_weights(candidate, weights_to_train, fitted)


def _without_reserved_names(model: ModelProto) -> tuple[ModelProto, dict[str, str]]:
    """Return the model without names that training graphs use, and the old name of each new one."""
    names = graph_names(model.graph)
    taken = sorted(name for name in names if name.startswith(RESERVED))
    renamed = {}
    for name in taken:
        new = f"user_{name}"
        while new in names:
            new = f"user_{new}"
        names.add(new)
        renamed[name] = new
    return map_names(model, renamed), {new: old for old, new in renamed.items()}


def _own_loss(model: ModelProto, loss: str, label: str, row_weight: str) -> OwnLoss | None:
    """Return the loss that a graph computes itself, by the names of its output and inputs."""
    outputs = {value.name for value in model.graph.output}
    inputs = {value.name for value in model.graph.input}
    if loss not in outputs or label not in inputs:
        return None
    return OwnLoss(loss, label, row_weight if row_weight in inputs else None)
