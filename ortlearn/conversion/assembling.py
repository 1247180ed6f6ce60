"""From a converted model to one that can be trained."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from onnx import ModelProto

from ..graphs import (
    extract_model,
    graph_names,
    initializer_arrays,
    map_names,
    name_nodes,
    value_types,
)
from ..models.constraints.base import Constraint
from ..models.constraints.reparametrisation import constrain
from .constraints.constrained_attributes import constraint_of
from .decompositions import exact_couplings
from .heads import attach_head
from .inputs.inputs import graph_inputs, schema_of_graph
from .preparation.kinds import ModelKind
from .trainable_model import TrainableModel
from .versions import with_free_rows
from .weights.fitted_attributes import fitted_arrays
from .weights.learned_parameters import Match, with_attributes
from .weights.weight_choice import asked_for, reached_weights, select_weights
from .weights.weight_facts import Examined, explained
from .weights.weight_names import renamed_weights
from .weights.weight_selection import Weight, find_weights

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
    kind : ModelKind
        What it is for.
    preprocessing : onnx.ModelProto or None
        Graph of the steps before the last.
    origin : str or None
        Name of the estimator or step that is trained.
    fitted : estimator or None
        What was converted.
    loose : list of str
        Initializers that others follow from in a form that is not known.
    """

    model: ModelProto
    kind: ModelKind
    preprocessing: ModelProto | None = None
    origin: str | None = None
    fitted: Any = None
    loose: list[str] = field(default_factory=list)


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
    weights, matches = _weights_of(model, original_names, incoming)
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
        model, head = attach_head(model, types, weights, incoming.kind)
        target = head.score
    part = exact_couplings(extract_model(model, [target]))
    with explained(Examined(model, part, target, weights, original_names, incoming.fitted), weights_to_train):
        named = None if weights_to_train is None else asked_for(weights, weights_to_train, original_names)
        trained = reached_weights(part, trained, target, original_names, named)
    constraints = _constraints_of(model, trained, matches)
    model, parameters = constrain(model, constraints)
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
        kind=replace(incoming.kind, core=None),
        constraints=constraints,
        parameters=parameters,
    )


def _weights_of(
    model: ModelProto, original_names: dict[str, str], incoming: Incoming
) -> tuple[dict[str, Weight], dict[str, Match]]:
    """Return the weights of a graph, and the fitted attributes that they hold."""
    frozen = _shared_with(model, incoming.preprocessing)
    weights = find_weights(model, frozen)
    if incoming.fitted is None:
        return weights, {}
    loose = [new for new, old in original_names.items() if old in incoming.loose]
    arrays = initializer_arrays(model, weights)
    return with_attributes(weights, arrays, fitted_arrays(incoming.fitted), frozen, loose)


def _constraints_of(
    model: ModelProto, trained: list[str], matches: dict[str, Match]
) -> dict[str, Constraint]:
    """Return what trained weights must keep."""
    arrays = initializer_arrays(model, trained)
    possible = {name: constraint_of(matches[name], arrays[name]) for name in trained if name in matches}
    return {name: constraint for name, constraint in possible.items() if constraint is not None}


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


def _shared_with(model: ModelProto, preprocessing: ModelProto | None) -> list[str]:
    """Return the names of the initializers that the preprocessing uses in the same way."""
    frozen = set() if preprocessing is None else set(_uses(preprocessing).values())
    return [name for name, use in _uses(model).items() if use in frozen]


def _uses(model: ModelProto) -> dict[str, tuple]:
    """Return what identifies each initializer in another conversion: its value, and its first reader."""
    readers: dict[str, tuple[str, int]] = {}
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            readers.setdefault(name, (node.op_type, position))
    return {
        name: (*readers[name], array.dtype.str, array.shape, array.tobytes())
        for name, array in initializer_arrays(model).items()
        if array.dtype.kind != "O" and name in readers
    }


def _own_loss(
    model: ModelProto, loss: str, label: str, row_weight: str
) -> tuple[str | None, str | None, str | None]:
    """Return the output and the inputs that a graph with its own loss has, None for each without one."""
    outputs = {value.name for value in model.graph.output}
    inputs = {value.name for value in model.graph.input}
    if loss not in outputs or label not in inputs:
        return None, None, None
    return loss, label, row_weight if row_weight in inputs else None
