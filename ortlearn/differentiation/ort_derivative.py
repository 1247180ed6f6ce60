"""Derivatives by onnxruntime-training's module builder, with the names of the original graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, TensorProto, helper

from ..exceptions import GradientError
from ..graphs import (
    GraphBuilder,
    TensorType,
    append_nodes,
    graph_names,
    make_inputs_of,
    make_value_info,
    map_names,
    opset_versions,
    prune,
    value_types,
)
from ..graphs.editing import with_fields
from ..graphs.nodes import attribute
from .ort_backend import build_module_graphs
from .ort_graphs import add_zero_gradients, names_with_gradient
from .ort_limits import check_supported
from .ort_rewrites import rewrite_for_ort

__all__ = ["gradient_of_outputs", "training_graph"]


def training_graph(model: ModelProto, weights: Sequence[str], inputs: Sequence[str]) -> ModelProto:
    """Return forward and backward with a YieldOp between them."""
    types = value_types(model)
    names = [*inputs, *weights]
    outputs = [value.name for value in model.graph.output]
    given = make_inputs_of(model, weights).graph.input
    model = rewrite_for_ort(model, outputs, names)
    check_supported(model, outputs, names)
    reached = set(names_with_gradient(model, outputs, names, types))
    if not reached:
        raise GradientError(f"None of the outputs {outputs} depends on any of {names}: there is no gradient.")
    zeros = [name for name in names if name not in reached]
    training = _training_graph(
        make_inputs_of(model, [name for name in weights if name in zeros]),
        [name for name in weights if name in reached],
        [name for name in inputs if name in reached],
    )
    training = add_zero_gradients(training, zeros, types)
    infos = [make_value_info(f"{name}_grad", types.get(name)) for name in names]
    return with_fields(training, input=given, output=infos)


def _training_graph(model: ModelProto, weights: Sequence[str], inputs: Sequence[str]) -> ModelProto:
    # The builder requires weights in alphabetical order: number them, and restore the names.
    order = [tensor.name for tensor in model.graph.initializer if tensor.name in set(weights)]
    width = len(str(len(order)))
    numbered = {name: f"W{index:0{width}d}_{name}" for index, name in enumerate(order)}
    training, _, _ = build_module_graphs(map_names(model, numbered), list(numbered.values()), inputs)
    back = {new: old for old, new in numbered.items()}
    return map_names(training, {**back, **{f"{new}_grad": f"{old}_grad" for new, old in back.items()}})


def gradient_of_outputs(
    model: ModelProto,
    weights: Sequence[str],
    inputs: Sequence[str],
    keep_outputs: bool = False,
    fill_ones: bool = False,
) -> ModelProto:
    """Return the graph from gradients of the outputs to gradients of inputs and weights."""
    training = training_graph(model, weights, inputs)
    types = value_types(model)
    position, yield_op = next((i, n) for i, n in enumerate(training.graph.node) if n.op_type == "YieldOp")
    # YieldOp has no outputs for inputs without a gradient
    none = attribute(yield_op, "non_differentiable_outputs", ())
    differentiated = [name for index, name in enumerate(yield_op.input) if index not in none]
    rename = {inner: f"{name}_grad" for name, inner in zip(differentiated, yield_op.output, strict=True)}
    # An output that other nodes read has an inner gradient of that name, which is a sum.
    taken = graph_names(training.graph) - set(yield_op.output)
    rename.update({seed: f"{seed}_total" for seed in list(rename.values()) if seed in taken})
    del training.graph.node[position]
    training = map_names(training, rename)
    seeds = {value.name: f"{value.name}_grad" for value in model.graph.output if _is_float(types, value.name)}
    op = _ones(training, seeds, types) if fill_ones else GraphBuilder()
    outputs = [*model.graph.output, *training.graph.output] if keep_outputs else list(training.graph.output)
    infos = [] if fill_ones else [make_value_info(seed, types.get(name)) for name, seed in seeds.items()]
    own = list(training.graph.node)
    training = append_nodes(training, op, inputs=infos, outputs=outputs)
    return prune(with_fields(training, node=[*own[:position], *op.nodes, *own[position:]]))


def _is_float(types: Mapping[str, TensorType], name: str) -> bool:
    return name in types and types[name].elem_type in (TensorProto.FLOAT, TensorProto.DOUBLE)


def _ones(model: ModelProto, seeds: Mapping[str, str], types: Mapping[str, TensorType]) -> GraphBuilder:
    """Return nodes that compute ones of the shape of each output."""
    op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
    for name, seed in seeds.items():
        one = op.constant(np.ones((), dtype=helper.tensor_dtype_to_np_dtype(types[name].elem_type)))
        op.node("Expand", one, op.Shape(name), outputs=[seed])
    return op
