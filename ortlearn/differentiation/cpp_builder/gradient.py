"""Gradients by the C++ builder, with the inputs, outputs and names of those by the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper

from ...exceptions import GradientError, limit_address
from ...graphs import (
    GraphBuilder,
    TensorType,
    graph_names,
    make_value_info,
    map_names,
    name_nodes,
    node_inputs,
    opset_versions,
    prune,
    replace_nodes,
    value_types,
)
from ...graphs.editing import renamed_node, with_fields
from ...graphs.nodes import attribute
from .refusal import CARRIERS, gradient_path, refusal
from .runtime import build, pybind

__all__ = ["gradient_graph"]


def gradient_graph(
    model: ModelProto,
    y: str | None,
    wrt: Sequence[str],
    *,
    keep_outputs: bool | None = None,
    fill_ones: bool = False,
) -> ModelProto:
    """Return the graph that :func:`..gradient_model.gradient_model` returns for the same arguments.

    The caller rejects nodes that round: the gradient through them would be zero.
    """
    pybind()
    model = replace_nodes(model, {("", "Softplus"): _softplus, ("", "ReduceSumSquare"): _sum_of_squares})
    types = value_types(model)
    own = [value.name for value in model.graph.output]
    outputs = [y] if y is not None else [name for name in own if types[name].elem_type in CARRIERS]
    reason = refusal(model, outputs, wrt)
    if reason is not None:
        reason += f".{limit_address('positive-list')}"
        raise GradientError(f"onnxruntime-training does not differentiate this graph: {reason}")
    result = _BuilderInterface(model, outputs, wrt, types, y is None and not fill_ones).gradient()
    kept = own if keep_outputs else [y] if y is not None and keep_outputs is None else []
    infos = {value.name: value for value in model.graph.output}
    gradients = [make_value_info(f"{name}_grad", types.get(name)) for name in wrt]
    result = with_fields(result, output=[*(infos[name] for name in kept), *gradients], value_info=[])
    return name_nodes(prune(result))


def _softplus(node: NodeProto, op: GraphBuilder) -> bool:
    # log(1 + exp(x)) = (x + |x|) / 2 + log(1 + exp(-|x|)), which losses use
    x, dtype = node.input[0], op.dtype(node.input[0]) or np.float32
    half, one = (op.constant(np.array(number, dtype)) for number in (0.5, 1.0))
    size = op.Abs(x)
    rest = op.Log(op.Add(op.Exp(op.Neg(size)), one))
    op.Add(op.Mul(op.Add(x, size), half), rest, outputs=[node.output[0]])
    return True


def _sum_of_squares(node: NodeProto, op: GraphBuilder) -> bool:
    # sum(x * x) over all axes, which penalties use
    if len(node.input) > 1 or attribute(node, "axes") is not None:
        return False
    x = node.input[0]
    op.ReduceSum(op.Mul(x, x), keepdims=attribute(node, "keepdims", 1), outputs=[node.output[0]])
    return True


class _BuilderInterface:
    """Names of the inputs and outputs of a graph, and of their copies that the builder gets.

    Without copies, the builder would fail for an input that one node reads twice, and sum the gradient of an
    output that other nodes read under the name of its seed.
    """

    def __init__(
        self,
        model: ModelProto,
        outputs: Sequence[str],
        wrt: Sequence[str],
        types: Mapping[str, TensorType],
        seeds_are_inputs: bool,
    ):
        self.model, self.types, self.seeds_are_inputs = model, types, seeds_are_inputs
        self.op = GraphBuilder(opset_versions(model)[""], existing_names=graph_names(model.graph))
        path, self.reached = gradient_path(model, outputs, wrt, types)
        read = set(outputs).union(*(node_inputs(node) for node in path))
        self.wrt = {name: self.op.unique(f"{name}_read") for name in wrt if name in read}
        self.zeros = [name for name in wrt if name not in read]
        self.outputs = {name: self.op.unique(f"{name}_written") for name in outputs}

    def gradient(self) -> ModelProto:
        """Return the graph with ``<name>_grad`` of each input, from ``<output>_grad`` of each output."""
        op = self.op
        for name, inner in self.wrt.items():
            op.node("Identity", name, outputs=[inner])
        op.nodes.extend(renamed_node(node, self.wrt) for node in self.model.graph.node)
        for name, outer in self.outputs.items():
            op.node("Identity", self.wrt.get(name, name), outputs=[outer])
            if not self.seeds_are_inputs:
                self._write_ones(name, f"{outer}_grad")
        for name in self.zeros:
            self._write_zeros(name)
        model = self._model()
        if self.wrt:
            differentiated = [outer for name, outer in self.outputs.items() if name in self.reached]
            model = build(model, differentiated, self.wrt)
        seeds = {f"{outer}_grad": f"{name}_grad" for name, outer in self.outputs.items()}
        sums = {f"{name}_grad": f"{outer}_sum" for name, outer in self.outputs.items()}
        return map_names(model, {**sums, **seeds})

    def _write_ones(self, name: str, seed: str) -> None:
        one = self.op.constant(np.ones((), helper.tensor_dtype_to_np_dtype(self.types[name].elem_type)))
        if self.types[name].shape == ():
            self.op.node("Identity", one, outputs=[seed])
        else:
            self.op.node("Expand", one, self.op.Shape(name), outputs=[seed])

    def _write_zeros(self, name: str) -> None:
        # The TrainingAgent only returns results that depend on a seed.
        nothing = self.op.Mul(self.op.Size(f"{next(iter(self.outputs.values()))}_grad"), 0)
        zero = helper.make_tensor("value", self.types[name].elem_type, [1], [0])
        shape = self.op.Add(self.op.Shape(name), nothing)
        self.op.node("ConstantOfShape", shape, outputs=[f"{name}_grad"], value=zero)

    def _model(self) -> ModelProto:
        """Return the graph for the builder."""
        graph, types = self.model.graph, self.types
        seeds = [make_value_info(f"{outer}_grad", types[name]) for name, outer in self.outputs.items()]
        outputs = [make_value_info(outer, types[name]) for name, outer in self.outputs.items()]
        zeros = [make_value_info(f"{name}_grad", types[name]) for name in self.zeros]
        model = with_fields(
            self.model,
            self.op.opsets,
            node=self.op.nodes,
            initializer=[*graph.initializer, *self.op.initializers],
            input=[*graph.input, *(seeds if self.seeds_are_inputs else [])],
            output=[*graph.output, *outputs, *zeros],
            value_info=(),  # inferred names of dimensions would count as lengths
        )
        return name_nodes(model)
