"""Trainable models with low-rank adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from ..models.parameters import ADAPTED, Parameter
from ..onnx_files.low_rank.adapters import Adapter, LoRA
from ..onnx_files.low_rank.graphs import with_adapters
from ..onnx_files.weight_locations import weight_locations, with_values
from .selection import reached_weights
from .trainable_model import TrainableModel

__all__ = ["adapter_arrays", "reached_adapters", "with_low_rank", "with_separate_adapters"]


def reached_adapters(model: TrainableModel, lora: LoRA) -> list[Adapter]:
    """Return the adapters of frozen weights that a gradient reaches.

    See :meth:`LoRA.adapters` for errors.
    """
    frozen = {name: weight for name, weight in model.parameters.items() if name not in model.trained}
    adapters = lora.adapters(model.model, frozen, model.original_names)
    reached = reached_weights(model, [adapter.weight for adapter in adapters])
    return [adapter for adapter in adapters if adapter.weight in reached]


def with_low_rank(model: TrainableModel, adapters: Sequence[Adapter]) -> TrainableModel:
    """Return a model with adapters, which are trained instead of their weights."""
    originals = dict(model.original_names)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.model.graph.initializer}
    weights, taken = dict(model.parameters), {*originals.values()}
    # The training starts from the file: weights that are trained directly keep their values.
    weights |= {name: replace(weights[name], drawn=False) for name in model.trained}
    for adapter in adapters:
        frozen = weights[adapter.weight]
        weights[adapter.weight] = replace(frozen, learned=False, reason=ADAPTED)
        nodes: Any = {"operators": frozen.operators, "nodes": frozen.nodes}
        for name, (*_, fan_in, fan_out) in zip((adapter.a, adapter.b), adapter.shapes, strict=True):
            drawn = name == adapter.a
            weights[name] = Parameter(name, "weight", True, (fan_in, fan_out), drawn=drawn, **nodes)
            original = originals[adapter.weight] + name.removeprefix(adapter.weight)
            while original in taken:
                original += "_"
            originals[name] = original
    return replace(
        model,
        model=with_adapters(model.model, adapters, shapes),
        parameters=weights,
        original_names=originals,
        trained=sorted([*model.trained, *(name for adapter in adapters for name in (adapter.a, adapter.b))]),
        adapters=tuple(adapters),
    )


def with_separate_adapters(
    model: TrainableModel, arrays: Mapping[str, np.ndarray], keep_upgrade: bool = False
) -> ModelProto:
    """Return the file with unmerged weights, and adapters as inputs that default to zero."""
    file, adapters = _separate(model, keep_upgrade)
    separate = {name for adapter in model.adapters for name in (adapter.a, adapter.b)}
    others = {model.original_names[name]: arrays[name] for name in model.trained if name not in separate}
    shapes = {name: location.shape for name, location in weight_locations(file).items()}
    return with_adapters(with_values(file, others), adapters, shapes, as_inputs=True)


def adapter_arrays(
    model: TrainableModel, arrays: Mapping[str, np.ndarray], keep_upgrade: bool = False
) -> dict[str, np.ndarray]:
    """Return A and B of every adapter, with the names and types of :func:`with_separate_adapters`."""
    file, adapters = _separate(model, keep_upgrade)
    locations, found = weight_locations(file), dict[str, np.ndarray]()
    for stable, adapter in zip(model.adapters, adapters, strict=True):
        dtype = helper.tensor_dtype_to_np_dtype(locations[adapter.weight].elem_type)
        found |= {adapter.a: arrays[stable.a].astype(dtype), adapter.b: arrays[stable.b].astype(dtype)}
    return found


def _separate(model: TrainableModel, keep_upgrade: bool) -> tuple[ModelProto, list[Adapter]]:
    """Return the file for separate adapters, and the adapters with original names."""
    file, upgraded, names = model.exported, model.upgraded, model.original_names
    assert file is not None and upgraded is not None
    adapters = [replace(a, weight=names[a.weight], a=names[a.a], b=names[a.b]) for a in model.adapters]
    locations = weight_locations(file)
    adapted = [locations[adapter.weight] for adapter in adapters]
    is_outer = all(location.graph is file.graph and location.quantisation is None for location in adapted)
    return (file if is_outer and not keep_upgrade else upgraded), adapters
