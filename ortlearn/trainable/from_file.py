"""Convert ONNX graphs into trainable ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from onnx import ModelProto, TensorProto, helper, numpy_helper

from ..differentiation.types.inference import infer_types
from ..exceptions import ConversionError, limit_address
from ..graphs import GraphBuilder, append_nodes, graph_names, map_names, name_nodes, value_types
from ..graphs.editing import renamed_node, with_fields
from ..graphs.files import MAX_MESSAGE
from ..models.parameters import CONSTANT, Parameter
from ..models.weight_names import renamed_weights
from ..onnx_files.dynamic_batch import with_dynamic_batch
from ..onnx_files.half_precision import with_float32
from ..onnx_files.interface import holds_weights, with_interface, without_tensors
from ..onnx_files.loading import INTERVALS, without_record
from ..onnx_files.low_rank.adapters import LoRA
from ..onnx_files.running_statistics import for_evaluation
from ..onnx_files.scores import attach_scores
from ..onnx_files.weights import find_weights
from ..preprocessing.schema import graph_inputs, schema_of_graph
from .low_rank import reached_adapters, with_low_rank
from .selection import select_weights, with_trained_weights
from .trainable_model import Entry, OwnLoss, TrainableModel

__all__ = ["trainable_from_graph"]

#: Bytes of an element of trained weights.
ITEM_SIZES = {TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8}
RESERVED = "ortlearn_"  # prefix of the names that training adds to a graph
#: Reason why a weight of a file with a replaced head is not trained by default.
BODY = "part of the body: the file declares that its head is trained"
#: Prefixes of the calibrated constants of a file with intervals or sets.
CALIBRATED = ("interval_", "calibration.", "quantiles.", "probabilities.")


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
    weights_to_train = default_weights if weights_to_train is None else weights_to_train
    weights = _weights(model, original_names, weights_to_train, default_weights)
    scores, own_loss = None, _own_loss(model, *own_loss_names, output_name)
    types = value_types(infer_types(model), infer=False)
    nodes_of_file = {node.name for node in model.graph.node}
    if own_loss is None:
        new_names = {old: new for new, old in reserved.items()}
        chosen = new_names.get(output_name or "", output_name)
        model, scores = attach_scores(model, types, weights, task, link, label_shape, chosen)
    other_inputs = (own_loss.label, own_loss.row_weight) if own_loss else (None, None)
    candidate = TrainableModel(
        model=model,
        entry=Entry(schema_of_graph(graph_inputs(model, types, *other_inputs))),
        scores=scores,
        parameters=weights,
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
        candidate = _with_exports(candidate, file, nodes_of_file, [adapter.weight for adapter in adapters])
    return _with_one_type(with_low_rank(candidate, adapters) if adapters else candidate)


def _with_one_type(found: TrainableModel) -> TrainableModel:
    """Return a model that trains weights in the type of its scores, and casts them to that of the file."""
    dtype = found.input_dtype if found.scores is None else found.scores.dtype
    arrays = {name: array for name, array in found.initial_weights().items() if array.dtype != dtype}
    if not arrays:
        return found
    model, op = found.model, GraphBuilder(existing_names=graph_names(found.model.graph))
    cast = {n: op.Cast(n, to=helper.np_dtype_to_tensor_dtype(array.dtype)) for n, array in arrays.items()}
    new = {name: numpy_helper.from_array(array.astype(dtype), name) for name, array in arrays.items()}
    nodes = [renamed_node(node, cast) for node in model.graph.node]
    tensors = [new.get(tensor.name, tensor) for tensor in model.graph.initializer]
    model = with_fields(model, node=nodes, initializer=tensors)
    return replace(found, model=append_nodes(model, op, first=True))


def _weights(
    model: ModelProto,
    original_names: dict[str, str],
    weights_to_train: Any,
    default_weights: Sequence[str] | None,
) -> dict[str, Parameter]:
    """Return the weights of a file, those to train as learned ones."""
    weights = find_weights(model)
    if any(entry.key == INTERVALS for entry in model.metadata_props):
        fixed = {name for name in weights if original_names[name].startswith(CALIBRATED)}
        weights |= {name: replace(weights[name], learned=False, reason=CONSTANT) for name in fixed}
    if default_weights is not None:
        reasons = {name: "" if original_names[name] in default_weights else BODY for name in weights}
        weights = {name: replace(w, reason=w.reason or reasons[name]) for name, w in weights.items()}
    if weights_to_train is None:
        return weights
    selected = select_weights(weights, weights_to_train, original_names)
    return {name: replace(w, learned=name in selected or w.learned) for name, w in weights.items()}


def _check_size(model: TrainableModel) -> None:
    """Raise an error for trained weights that do not fit into a protobuf message."""
    tensors = [tensor for tensor in model.model.graph.initializer if tensor.name in set(model.trained)]
    sizes = {tensor.name: math.prod(tensor.dims) * ITEM_SIZES[tensor.data_type] for tensor in tensors}
    total = sum(sizes.values())
    if total > MAX_MESSAGE:
        largest = model.original_names[max(sizes, key=lambda name: sizes[name])]
        raise ConversionError(
            f"The weights to train take {total / 2**30:.3g} GiB (the largest is {largest!r}), more than the "
            "limit of 2 GiB, which does not apply to frozen weights: select fewer by weights_to_train, or "
            f"train low-rank adapters, lora=LoRA(...).{limit_address('large-weights')}"
        )


def _with_exports(
    found: TrainableModel, file: ModelProto, nodes_of_file: Collection[str], adapted: Collection[str]
) -> TrainableModel:
    """Return a model with the file that trained weights are written into.

    This is the given file if it contains the weights. If fused operators were decomposed, or outputs are
    computed differently, it is the trained graph with the interface of the file. ``adapted`` are the weights
    with adapters.
    """
    graph = found.with_weights(found.initial_weights())
    loss, weights = found.own_loss, [found.original_names[name] for name in (*found.trained, *adapted)]
    if loss is not None and len(file.graph.output) > 1:
        file = without_tensors(file, [loss.output], [loss.label, loss.row_weight or ""])
    is_unchanged = all(node.name in nodes_of_file for node in graph.graph.node)
    upgraded = with_interface(graph, with_float32(file))
    exported = file if is_unchanged and holds_weights(file, graph, weights) else upgraded
    exported, upgraded = (for_evaluation(without_record(model)) for model in (exported, upgraded))
    return replace(found, exported=exported, upgraded=upgraded)


def _without_reserved_names(model: ModelProto) -> tuple[ModelProto, dict[str, str]]:
    """Return the model without reserved names, and the old name of each new one."""
    names = graph_names(model.graph)
    renamed = {}
    for name in sorted(name for name in names if name.startswith(RESERVED)):
        new = f"user_{name}"
        while new in names:
            new = f"user_{new}"
        names.add(new)
        renamed[name] = new
    return map_names(model, renamed), {new: old for old, new in renamed.items()}


def _own_loss(
    model: ModelProto, loss: str, label: str, sample_weight: str, output_name: str | None
) -> OwnLoss | None:
    """Return the loss that a graph computes, by the names of its output and inputs, or None."""
    outputs = {value.name for value in model.graph.output}
    inputs = {value.name for value in model.graph.input}
    if loss not in outputs or label not in inputs:
        return None
    if output_name is not None:
        raise ConversionError(
            f"output_name={output_name!r} cannot be trained: the model computes its own loss, {loss!r}. "
            "Remove output_name, or pass another output as loss_output_name."
        )
    return OwnLoss(loss, label, sample_weight if sample_weight in inputs else None)
