"""Derivatives by onnxruntime-training's module builder, under the names the graph came with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper

from ..graphs import (
    GraphBuilder,
    append_nodes,
    graph_names,
    make_value_info,
    map_names,
    opset_versions,
    prune,
    value_types,
)
from .ort_backend import build_module_graphs

__all__ = ["gradient_of_outputs", "training_graph"]


def training_graph(model: ModelProto, weights: Sequence[str], inputs: Sequence[str]) -> ModelProto:
    """Return forward and backward with a YieldOp between them.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    weights : sequence of str
        Initializers to differentiate with respect to.
    inputs : sequence of str
        Inputs to differentiate with respect to.

    Returns
    -------
    onnx.ModelProto
        Graph that only onnxruntime-training runs.
    """
    # The builder wants weights in alphabetical order: number them, and give the old names back.
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
    """Return the graph from gradients of the outputs to gradients of inputs and weights.

    Parameters
    ----------
    model : onnx.ModelProto
        Graph.
    weights, inputs : sequence of str
        What to differentiate with respect to.
    keep_outputs : bool, default=False
        Whether the original outputs come first.
    fill_ones : bool, default=False
        Whether the gradients of the outputs are ones instead of inputs.

    Returns
    -------
    onnx.ModelProto
        Graph with the inputs of the model, the weights and ``<output>_grad``.
    """
    training = training_graph(model, weights, inputs)
    types = value_types(model)
    position, yield_op = next((i, n) for i, n in enumerate(training.graph.node) if n.op_type == "YieldOp")
    pairs = {name: f"{name}_grad" for name in yield_op.input}
    rename = dict(zip(yield_op.output, pairs.values(), strict=True))
    # An output that other nodes read has an inner gradient of that name, the sum of both.
    taken = graph_names(training.graph)
    rename.update({seed: f"{seed}_total" for seed in pairs.values() if seed in taken - set(yield_op.output)})
    del training.graph.node[position]
    training = map_names(training, rename)
    op = GraphBuilder(opset_versions(training)[""], existing_names=graph_names(training.graph))
    seeds = [make_value_info(seed, types.get(name)) for name, seed in pairs.items()]
    if fill_ones:
        for name, seed in pairs.items():
            op.node(
                "Expand",
                op.constant(np.ones((), dtype=helper.tensor_dtype_to_np_dtype(types[name].elem_type))),
                op.Shape(name),
                outputs=[seed],
            )
        seeds = []
    names = [*inputs, *weights]
    outputs = [make_value_info(f"{name}_grad", types.get(name)) for name in names]
    if keep_outputs:
        outputs = [*model.graph.output, *outputs]
    own = list(training.graph.node)
    training = append_nodes(training, op, inputs=seeds, outputs=outputs)
    _reorder(training, own[:position], op.nodes, own[position:])
    return prune(training)


def _reorder(model: ModelProto, before: list[NodeProto], between: list[NodeProto], after: list[NodeProto]):
    """Put nodes in the order before, between, after."""
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in (*before, *between, *after)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
