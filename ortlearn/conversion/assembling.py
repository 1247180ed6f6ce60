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
from ..preprocessing.schema import graph_inputs, schema_of_graph
from .decompositions import exact_couplings
from .heads import attach_head
from .trainable_model import TrainableModel
from .versions import with_free_rows
from .weights.weight_choice import asked_for, reached_weights, select_weights
from .weights.weight_facts import Examined, explained
from .weights.weight_names import renamed_weights
from .weights.weight_selection import find_weights

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
    loss, label, row_weight = _own_loss(model, loss_output_name, label_name, weight_name)
    target = loss or model.graph.output[-1].name
    with explained(
        Examined(model, model, target, weights, original_names, incoming.fitted), weights_to_train
    ):
        trained = select_weights(weights, weights_to_train, original_names)
    weights = {
        name: replace(weight, learned=name in trained or weight.learned) for name, weight in weights.items()
    }
    head = None
    if loss is None:
        model, head = attach_head(model, types, weights, incoming.task, incoming.link)
        target = head.score
    part = exact_couplings(extract_model(model, [target]))
    with explained(Examined(model, part, target, weights, original_names, incoming.fitted), weights_to_train):
        named = None if weights_to_train is None else asked_for(weights, weights_to_train, original_names)
        trained = reached_weights(part, trained, target, original_names, named)
    return TrainableModel(
        model=model,
        schema=schema_of_graph(graph_inputs(model, types, label, row_weight)),
        head=head,
        weights=weights,
        trained=trained,
        original_names=original_names,
        loss=loss,
        label=label,
        row_weight=row_weight,
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


def _own_loss(
    model: ModelProto, loss: str, label: str, row_weight: str
) -> tuple[str | None, str | None, str | None]:
    """Return the output and the inputs that a graph with its own loss has, None for each without one."""
    outputs = {value.name for value in model.graph.output}
    inputs = {value.name for value in model.graph.input}
    if loss not in outputs or label not in inputs:
        return None, None, None
    return loss, label, row_weight if row_weight in inputs else None
