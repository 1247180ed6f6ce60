"""Differentiate a model into forward and backward nodes, and build models of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from ..exceptions import GradientError
from ..graphs import graph_names, inline_functions, make_value_info, node_inputs, opset_versions, value_types
from ..graphs.editing import renamed_node, with_fields
from ..graphs.nodes import needed_nodes
from ..graphs.portable_nodes import portable_nodes
from .cleanup import simplify
from .empty_tensors import guard_top_k
from .gradient_builder import GradientBuilder
from .reverse import gradient_graph
from .rule_context import FLOAT_TYPES, is_differentiable
from .types.inference import infer_types

__all__ = ["SUFFIX", "DifferentiatedModel", "differentiate", "make_model_of", "prepare"]

SUFFIX = "_grad"


@dataclass
class DifferentiatedModel:
    """A model, its forward and backward nodes, and a builder with the types of both."""

    model: ModelProto
    op: GradientBuilder
    forward: list[NodeProto]
    backward: list[NodeProto] = field(default_factory=list)
    seeds: dict[str, str] = field(default_factory=dict)
    seed_inputs: dict[str, str] = field(default_factory=dict)
    grads: dict[str, str] = field(default_factory=dict)

    def assemble(self, kept: Sequence[str]) -> ModelProto:
        """Return one model with some outputs, followed by the gradients."""
        names, nodes = self.name_gradients(taken=kept)
        outputs = [*kept, *names.values()]
        types = {name: self.op.type(weight) for weight, name in names.items()}
        nodes = needed_nodes([*self.forward, *nodes], outputs)
        declared = {value.name: value for value in self.model.graph.output}
        infos = [
            declared[name]
            if name in declared
            else make_value_info(name, types.get(name) or self.op.type(name))
            for name in outputs
        ]
        inputs = [*self.model.graph.input, *self.grad_input_infos()]
        return make_model_of(self.model, self.op, nodes, inputs, infos)

    def grad_input_infos(self) -> Any:
        """Return the inputs for gradients of outputs."""
        return [make_value_info(seed, self.op.type(name)) for seed, name in self.seed_inputs.items()]

    def name_gradients(self, taken: Sequence[str] = ()) -> tuple[dict[str, str], list[NodeProto]]:
        """Return the output name of each gradient, and backward nodes renamed accordingly."""
        nodes = list(self.backward)
        made = {name for node in nodes for name in node.output}
        names, renamed = {}, {}
        used = set(self.op.names)
        for weight, grad in self.grads.items():
            name = weight + SUFFIX
            while name in used:
                name += SUFFIX
            used.add(name)
            names[weight] = name
            if grad in made and grad not in renamed and grad not in taken:
                renamed[grad] = name
            else:
                source = renamed.get(grad, grad)
                nodes.append(
                    helper.make_node("Identity", [source], [name], name=self.op.unique("node_Identity"))
                )
        return names, [renamed_node(node, renamed) for node in nodes]


def differentiate(
    model: ModelProto,
    y: str | None,
    wrt: Sequence[str],
    *,
    grad_inputs: bool = False,
    fill_ones: bool = False,
    origin: Mapping[str, str] | None = None,
    straight_through: bool = False,
) -> DifferentiatedModel:
    """Return a model with the separate nodes of its gradient."""
    result = prepare(model, wrt)
    names = _outputs_to_differentiate(result, y)
    for name in names:
        if fill_ones:
            result.seeds[name] = result.op.constant_gradient(name, 1.0)
        elif grad_inputs or y is None:
            seed = _free_name(result.op, name + SUFFIX)
            result.op.with_type(seed, name)
            result.seed_inputs[seed] = name
            same_type = result.op.gradient_type(name) == result.op.type(name)
            seed = seed if same_type else result.op.cast(seed, np.float32)
            result.seeds[name] = result.op.with_gradient_type(seed, name)
        else:
            result.seeds[name] = _one(result.op, name)
    grads = gradient_graph(
        result.op, result.forward, result.seeds, wrt, origin=origin, straight_through=straight_through
    )
    result.backward, alias = simplify(result.op, result.forward, result.op.nodes)
    result.grads = {name: alias.get(grad, grad) for name, grad in grads.items()}
    result.backward = needed_nodes(result.backward, result.grads.values())
    return result


def prepare(model: ModelProto, wrt: Sequence[str]) -> DifferentiatedModel:
    """Return the nodes of a model with a builder that has their types and constants."""
    model = portable_nodes(inline_functions(model))
    versions = opset_versions(model)
    if versions.get("", 0) < 13:
        raise GradientError(
            f"Differentiation requires opset 13 or later, the model has {versions.get('', 0)}. Convert it: "
            "onnx.version_converter.convert_version(model, 18)."
        )
    inferred = infer_types(model)
    graph = inferred.graph
    changing = set(wrt) | {value.name for value in graph.input}
    op = GradientBuilder(
        versions[""],
        existing_names=graph_names(graph),
        types=value_types(inferred, infer=False),
        constants=[tensor for tensor in graph.initializer if tensor.name not in changing],
    )
    op.opsets.update(versions)
    op.first_input = next((value.name for value in graph.input), op.first_input)  # weights are the last ones
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes += guard_top_k(op, node) if (node.domain, node.op_type) == ("", "TopK") else [node]
    for node in nodes:
        if node.op_type == "Constant":
            op.add_constant_node(node)
    _check_wrt(op, wrt)
    return DifferentiatedModel(model, op, nodes)


def _check_wrt(op: GradientBuilder, wrt: Sequence[str]) -> None:
    for name in wrt:
        if name not in op.names:
            raise GradientError(
                f"{name!r} is not a tensor of the graph: there is no gradient with respect to it."
            )
        if op.elem_type(name) not in (None, *FLOAT_TYPES):
            raise GradientError(f"{name!r} has type {op.dtype(name)}; gradients require float32 or float64.")


def _outputs_to_differentiate(result: DifferentiatedModel, y: str | None) -> list[str]:
    op = result.op
    if y is not None:
        if y not in op.names:
            names = [value.name for value in result.model.graph.output]
            raise GradientError(f"{y!r} is not a tensor of the graph; its outputs are {names}.")
        if not is_differentiable(op, y):
            raise GradientError(f"{y!r} has type {op.dtype(y)}; only floating-point numbers have a gradient.")
        return [y]
    return [
        value.name
        for value in result.model.graph.output
        if value.type.HasField("tensor_type") and is_differentiable(op, value.name)
    ]


def _one(op: GradientBuilder, y: str) -> str:
    """Return the gradient of a scalar with respect to itself."""
    shape = op.shape(y)
    if shape is None:
        return op.constant_gradient(y, 1.0)
    wrong = [dim for dim in shape if dim not in (1, None) and not str(dim).startswith("unk__")]
    if wrong:
        raise GradientError(
            f"{y!r} has shape {shape}, but only scalars have a gradient. Sum it, or pass the gradient of the "
            "output as an input (grad_inputs=True)."
        )
    if None in shape or wrong != [] or any(isinstance(dim, str) for dim in shape):
        return op.constant_gradient(y, 1.0)
    return op.constant(np.ones(shape, dtype=np.float64 if op.dtype(y) == np.float64 else np.float32))


def _free_name(op: GradientBuilder, name: str) -> str:
    while name in op.names:
        name += SUFFIX
    op.names.add(name)
    return name


def make_model_of(
    model: ModelProto, op: GradientBuilder, nodes: Any, inputs: Any, outputs: Any
) -> ModelProto:
    """Return a model with the header and the required initializers of another one."""
    read = {value.name for value in outputs}.union(*map(node_inputs, nodes))
    initializers = [t for t in (*model.graph.initializer, *op.initializers) if t.name in read]
    used = {node.domain for node in nodes}
    opsets = {domain: version for domain, version in op.opsets.items() if domain in used}
    result = with_fields(
        model, opsets, node=nodes, input=inputs, output=outputs, initializer=initializers, value_info=()
    )
    del result.functions[:]
    return result
