"""From a converted model to one that can be trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onnx import ModelProto

from ..graphs import (
    extract_model,
    graph_names,
    map_names,
    name_nodes,
    value_types,
)
from ..onnx_files.decompositions import exact_couplings
from ..onnx_files.scores import attach_head
from ..onnx_files.versions import with_free_rows
from ..onnx_files.weights import find_weights
from ..preprocessing.schema import graph_inputs, schema_of_graph
from .facts import Examined, explained
from .selection import asked_for, reached_weights, select_weights
from .trainable_model import Entry, OwnLoss, TrainableModel
from .weight_names import renamed_weights

__all__ = ["Incoming", "assemble"]

#: How the names begin that training graphs add to a model.
RESERVED = "ortlearn_"


@dataclass(frozen=True)
class Incoming:
    """A converted model, before its weights have stable names.

    Attributes
    ----------
    model : onnx.ModelProto
        Graph without fused operators.
    task : {"regression", "classification"} or None
        What it is for; None where its outputs tell.
    link : {"identity", "log"}
        What the scores of a regressor are to be of its predictions.
    origin : str or None
        Name of the estimator or step that is trained.
    fitted : estimator or None
        What was converted.
    """

    model: ModelProto
    task: str | None = None
    link: str = "identity"
    origin: str | None = None
    fitted: Any = None


def assemble(
    incoming: Incoming,
    weights_to_train: Any,
    loss_output_name: str,
    label_name: str,
    weight_name: str = "sample_weight",
) -> TrainableModel:
    """Name the weights of a converted model, choose those to train, and find what is trained.

    Parameters
    ----------
    incoming : Incoming
        Converted model.
    weights_to_train : str, sequence of str or None
        Names or glob patterns.
    loss_output_name, label_name : str
        Output and input that make a graph one with its own loss.
    weight_name : str, default="sample_weight"
        Input of such a graph that takes the weights of the rows.

    Returns
    -------
    TrainableModel
        Graph, weights and head.
    """
    model, reserved = _without_reserved_names(with_free_rows(incoming.model))
    model, original_names = renamed_weights(name_nodes(model))
    original_names = {new: reserved.get(old, old) for new, old in original_names.items()}
    types = value_types(model)
    weights = find_weights(model)
    own_loss = _own_loss(model, loss_output_name, label_name, weight_name)
    target = own_loss.output if own_loss else model.graph.output[-1].name
    with explained(
        Examined(model, model, target, weights, original_names, incoming.fitted), weights_to_train
    ):
        trained = select_weights(weights, weights_to_train, original_names)
    weights = {
        name: replace(weight, learned=name in trained or weight.learned) for name, weight in weights.items()
    }
    head = None
    if own_loss is None:
        model, head = attach_head(model, types, weights, incoming.task, incoming.link)
        target = head.score
    part = exact_couplings(extract_model(model, [target]))
    with explained(Examined(model, part, target, weights, original_names, incoming.fitted), weights_to_train):
        named = None if weights_to_train is None else asked_for(weights, weights_to_train, original_names)
        trained = reached_weights(part, trained, target, original_names, named)
    others = (own_loss.label, own_loss.row_weight) if own_loss else (None, None)
    return TrainableModel(
        model=model,
        entry=Entry(schema_of_graph(graph_inputs(model, types, *others))),
        head=head,
        weights=weights,
        trained=trained,
        original_names=original_names,
        own_loss=own_loss,
        origin=incoming.origin,
        reserved_names=reserved,
        link=incoming.link,
    )


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
