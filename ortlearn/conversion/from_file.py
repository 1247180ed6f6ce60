"""Convert an ONNX graph into a trainable one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from onnx import ModelProto, TensorProto

from ..exceptions import ConversionError
from ..graphs import graph_names, map_names, name_nodes, value_types
from ..graphs.files import MAX_MESSAGE
from ..onnx_files.adapters import LoRA
from ..onnx_files.dynamic_batch import with_dynamic_batch
from ..onnx_files.half_precision import with_float32
from ..onnx_files.interface import holds_weights, with_interface, without_tensors
from ..onnx_files.loading import without_record
from ..onnx_files.scores import attach_scores
from ..onnx_files.weights import find_weights
from ..preprocessing.schema import graph_inputs, schema_of_graph
from .low_rank import reached_adapters, with_low_rank
from .selection import select_weights, with_trained_weights
from .trainable_model import Entry, OwnLoss, TrainableModel
from .weight_names import renamed_weights

__all__ = ["trainable_from_graph"]

#: Bytes of an element of trained weights.
ITEM_SIZES = {TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8}
#: Prefix of names that training graphs add to a model.
RESERVED = "ortlearn_"
#: Reason why a weight of a file with a new head is not trained by default.
BODY = "part of the body: the file declares that its head is trained"


def trainable_from_graph(
    model: ModelProto,
    weights_to_train: Any,
    *,
    own_loss_names: tuple[str, str, str] = ("loss", "label", "sample_weight"),
    task: str | None = None,
    link: str = "identity",
    origin: str | None = None,
    fitted: Any = None,
    label_shape: tuple[int, ...] | None = None,
    file: ModelProto | None = None,
    lora: LoRA | None = None,
    default_weights: Sequence[str] | None = None,
    output_name: str | None = None,
) -> TrainableModel:
    """Return a trainable graph, whose weights are found by the operators that read them."""
    model, reserved = _without_reserved_names(with_dynamic_batch(model, required=True))
    model, original_names = renamed_weights(name_nodes(model))
    original_names = {new: reserved.get(old, old) for new, old in original_names.items()}
    types, weights = value_types(model), find_weights(model)
    if default_weights is not None:
        weights = {
            name: replace(w, reason=w.reason or ("" if original_names[name] in default_weights else BODY))
            for name, w in weights.items()
        }
        weights_to_train = default_weights if weights_to_train is None else weights_to_train
    if weights_to_train is not None:
        selected = select_weights(weights, weights_to_train, original_names)
        weights = {name: replace(w, learned=name in selected or w.learned) for name, w in weights.items()}
    scores, own_loss = None, _own_loss(model, *own_loss_names)
    own_nodes = {node.name for node in model.graph.node}
    if own_loss is None:
        new_names = {old: new for new, old in reserved.items()}
        chosen = new_names.get(output_name or "", output_name)
        model, scores = attach_scores(model, types, weights, task, link, label_shape, chosen)
    elif output_name is not None:
        raise ConversionError(
            f"output_name={output_name!r} cannot be trained: the model computes its own loss, "
            f"{own_loss.output!r}. Remove output_name, or pass another output as loss_output_name."
        )
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
    if lora is None or weights_to_train is not None:
        candidate = with_trained_weights(candidate, weights_to_train, fitted)
    candidate = replace(candidate, trained=sorted({*candidate.trained, *candidate.statistics}))
    _check_size(candidate)
    adapters = [] if lora is None else reached_adapters(candidate, lora)
    if file is not None:
        candidate = _with_exports(candidate, file, own_nodes, [adapter.weight for adapter in adapters])
    return with_low_rank(candidate, adapters) if adapters else candidate


def _check_size(model: TrainableModel) -> None:
    """Raise an error for trained weights that do not fit into a protobuf message."""
    tensors = [tensor for tensor in model.model.graph.initializer if tensor.name in set(model.trained)]
    sizes = {tensor.name: math.prod(tensor.dims) * ITEM_SIZES[tensor.data_type] for tensor in tensors}
    total = sum(sizes.values())
    if total > MAX_MESSAGE:
        largest = model.original_names[max(sizes, key=lambda name: sizes[name])]
        raise ConversionError(
            f"The weights to train take {total / 2**30:.3g} GiB, the largest one is {largest!r}, and "
            "training holds up to 2 GiB of them, besides frozen ones of any size: name fewer in "
            "weights_to_train, or train low-rank adapters, lora=LoRA(...)."
        )


def _with_exports(
    found: TrainableModel, file: ModelProto, own_nodes: Collection[str], adapted: Collection[str]
) -> TrainableModel:
    """Return a model with the file that trained weights are written into.

    This is the given file if it contains the weights. If fused operators were decomposed, or outputs are
    computed differently, it is the trained graph with the interface of the file. ``own_nodes`` are the nodes
    of the file, ``adapted`` the weights with adapters.
    """
    graph = found.with_weights(found.initial_weights())
    own, weights = found.own_loss, [found.original_names[name] for name in (*found.trained, *adapted)]
    if own is not None and len(file.graph.output) > 1:
        file = without_tensors(file, [own.output], [own.label, own.row_weight or ""])
    is_as_given = all(node.name in own_nodes for node in graph.graph.node)
    upgraded = with_interface(graph, with_float32(file))
    kept = file if is_as_given and holds_weights(file, graph, weights) else upgraded
    return replace(found, exported=without_record(kept), upgraded=without_record(upgraded))


def _without_reserved_names(model: ModelProto) -> tuple[ModelProto, dict[str, str]]:
    """Return the model without reserved names, and the old name of each new one."""
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
