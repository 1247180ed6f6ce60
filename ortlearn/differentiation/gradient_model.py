"""Models that compute gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, NodeProto, helper

from ..exceptions import GradientError
from ..graphs.editing import copy_model, map_names
from ..graphs.functions import inline_functions
from ..graphs.queries import graph_names, make_value_info, node_inputs, opset_versions, value_types
from .cleanup import drop_unused, simplify
from .empty_tensors import guard_top_k
from .gradient_builder import GradientBuilder
from .inference import infer_types
from .reverse import gradient_graph
from .rule_context import FLOAT_TYPES, is_differentiable

__all__ = ["gradient_model"]

SUFFIX = "_grad"


def gradient_model(
    model: ModelProto,
    y: str | None,
    wrt: Sequence[str],
    *,
    grad_inputs: bool = False,
    keep_outputs: bool | None = None,
    fill_ones: bool = False,
    origin: Mapping[str, str] | None = None,
    straight_through: bool = False,
) -> ModelProto:
    """Return a model that computes the gradient of an output with respect to inputs and weights.

    Initializers that are not in ``wrt`` count as constants; turn those whose values will change
    into inputs first (:func:`ortlearn.graphs.make_inputs_of`).

    Parameters
    ----------
    model : onnx.ModelProto
        Model, for opset 13 or later.
    y : str or None
        Output to differentiate; None for every floating-point output together.
    wrt : sequence of str
        Inputs and initializers to differentiate with respect to, float32 or float64.
    grad_inputs : bool, default=False
        Whether the gradient of each output ``o`` is an input named ``o_grad``, of the shape of
        ``o``; it always is when ``y`` is None, unless ``fill_ones``. Otherwise ``y`` is a scalar
        (shape (), (1,) or (1, 1)) and its gradient is one.
    keep_outputs : bool, default=None
        Whether the model's own outputs come first. None keeps only ``y``, and nothing where
        gradients are inputs.
    fill_ones : bool, default=False
        Whether the gradient of each output is ones of its shape.
    origin : mapping of str to str, default=None
        Where nodes come from, by node name (a scikit-learn step); shown in errors.
    straight_through : bool, default=False
        Whether quantisation, and casts to integers and back, are differentiated as if they did not
        round, instead of an error.

    Returns
    -------
    onnx.ModelProto
        Model with one output ``w_grad`` per name of ``wrt``, of its shape, in that order. It is
        zero where the output does not depend on ``w``. Where the graph has a tensor of
        that name, the suffix is repeated.

    Raises
    ------
    GradientError
        If an operator on the way has no gradient rule or rounds, if ``y`` is not a scalar, if a name is
        unknown or not of a floating-point type, or if the opset is older than 13.

    Examples
    --------
    >>> from onnx import parser
    >>> from onnx.reference import ReferenceEvaluator
    >>> import numpy as np
    >>> from ortlearn.differentiation.gradient_model import gradient_model
    >>> model = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N] x) => (float y) { s = Mul (x, x) y = ReduceSum <keepdims=0> (s) }''')
    >>> onx = gradient_model(model, "y", ["x"])
    >>> [output.name for output in onx.graph.output]
    ['y', 'x_grad']
    >>> x = np.array([1.0, -2.0], dtype=np.float32)
    >>> ReferenceEvaluator(onx).run(None, {"x": x})[1].tolist()
    [2.0, -4.0]
    """
    parts = build_parts(
        model,
        y,
        wrt,
        grad_inputs=grad_inputs,
        fill_ones=fill_ones,
        origin=origin,
        straight_through=straight_through,
    )
    if keep_outputs is None:
        kept = [y] if y is not None and not grad_inputs else []
    else:
        kept = [value.name for value in model.graph.output] if keep_outputs else []
    return parts.assemble([name for name in kept if name is not None])


@dataclass
class Parts:
    """A model being differentiated: its nodes, the gradient's, and what is known of both."""

    model: ModelProto
    op: GradientBuilder
    forward: list[NodeProto]
    backward: list[NodeProto] = field(default_factory=list)
    seeds: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    grads: dict[str, str] = field(default_factory=dict)

    def assemble(self, kept: Sequence[str]) -> ModelProto:
        """Return one model with the outputs to keep, then the gradients."""
        names, nodes = self.name_gradients(taken=kept)
        outputs = [*kept, *names.values()]
        types = {name: self.op.type(weight) for weight, name in names.items()}
        nodes = drop_unused([*self.forward, *nodes], outputs)
        declared = {value.name: value for value in self.model.graph.output}
        infos = [
            declared[name]
            if name in declared
            else make_value_info(name, types.get(name) or self.op.type(name))
            for name in outputs
        ]
        inputs = [*self.model.graph.input, *self.grad_input_infos()]
        return make_model_of(self.model, self.op, nodes, inputs, infos)

    def grad_input_infos(self):
        """Return the inputs that hold gradients of outputs."""
        return [make_value_info(seed, self.op.type(name)) for seed, name in self.given.items()]

    def name_gradients(self, taken: Sequence[str] = ()) -> tuple[dict[str, str], list[NodeProto]]:
        """Return the output name of each gradient, and backward nodes that give them these names."""
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
        return names, rename_nodes(nodes, renamed)


def build_parts(
    model: ModelProto,
    y: str | None,
    wrt: Sequence[str],
    *,
    grad_inputs: bool = False,
    fill_ones: bool = False,
    origin: Mapping[str, str] | None = None,
    straight_through: bool = False,
) -> Parts:
    """Differentiate a model, and return its nodes and the gradient's apart."""
    parts = prepare(model, wrt)
    names = _outputs_to_differentiate(parts, y)
    for name in names:
        if fill_ones:
            parts.seeds[name] = parts.op.constant_gradient(name, 1.0)
        elif grad_inputs or y is None:
            seed = _free_name(parts.op, name + SUFFIX)
            parts.op.with_type(seed, name)
            parts.given[seed] = name
            same_type = parts.op.gradient_type(name) == parts.op.type(name)
            seed = seed if same_type else parts.op.cast(seed, np.float32)
            parts.seeds[name] = parts.op.with_gradient_type(seed, name)
        else:
            parts.seeds[name] = _one(parts.op, name)
    grads = gradient_graph(
        parts.op, parts.forward, parts.seeds, wrt, origin=origin, straight_through=straight_through
    )
    parts.backward, alias = simplify(parts.op, parts.forward, parts.op.nodes)
    parts.grads = {name: alias.get(grad, grad) for name, grad in grads.items()}
    parts.backward = drop_unused(parts.backward, parts.grads.values())
    return parts


def prepare(model: ModelProto, wrt: Sequence[str]) -> Parts:
    """Return a model's nodes with a builder that knows their types and constants."""
    model = inline_functions(model)
    versions = opset_versions(model)
    if versions.get("", 0) < 13:
        raise GradientError(
            f"Differentiation needs opset 13 or later, the model has {versions.get('', 0)}. Convert it: "
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
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes += guard_top_k(op, node) if (node.domain, node.op_type) == ("", "TopK") else [node]
    for node in nodes:
        if node.op_type == "Constant":
            op.learn_constant(node)
    _check_wrt(op, wrt)
    return Parts(model, op, nodes)


def _check_wrt(op: GradientBuilder, wrt: Sequence[str]) -> None:
    for name in wrt:
        if name not in op.names:
            raise GradientError(f"{name!r} is not a tensor of the graph; it cannot be differentiated to.")
        if op.elem_type(name) not in (None, *FLOAT_TYPES):
            raise GradientError(f"{name!r} has type {op.dtype(name)}; gradients need float32 or float64.")


def _outputs_to_differentiate(parts: Parts, y: str | None) -> list[str]:
    op = parts.op
    if y is not None:
        if y not in op.names:
            names = [value.name for value in parts.model.graph.output]
            raise GradientError(f"{y!r} is not a tensor of the graph; its outputs are {names}.")
        if not is_differentiable(op, y):
            raise GradientError(f"{y!r} has type {op.dtype(y)}; only floating-point numbers have a gradient.")
        return [y]
    return [
        value.name
        for value in parts.model.graph.output
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
            f"{y!r} has shape {shape}; only a scalar has a gradient. Sum it, or give the gradient of the "
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


def rename_nodes(nodes: list[NodeProto], mapping: Mapping[str, str]) -> list[NodeProto]:
    """Return nodes with tensors renamed, in subgraphs too."""
    if not mapping:
        return nodes
    renamed = map_names(helper.make_model(helper.make_graph(nodes, "nodes", [], [])), mapping)
    return list(renamed.graph.node)


def make_model_of(model: ModelProto, op: GradientBuilder, nodes, inputs, outputs) -> ModelProto:
    """Return a model with the header and the initializers of another one, those it needs."""
    result = copy_model(model)
    graph = result.graph
    read = {value.name for value in outputs}.union(*(node_inputs(node) for node in nodes))
    initializers = [t for t in (*graph.initializer, *op.initializers) if t.name in read]
    fields = {"node": nodes, "input": inputs, "output": outputs, "initializer": initializers}
    for name, values in fields.items():
        values = [type(value).FromString(value.SerializeToString()) for value in values]
        del getattr(graph, name)[:]
        getattr(graph, name).extend(values)
    del graph.value_info[:]
    del result.functions[:]
    known = opset_versions(result)
    used = {node.domain for node in graph.node}
    for domain, version in op.opsets.items():
        if domain in used and domain not in known:
            result.opset_import.append(helper.make_opsetid(domain, version))
    return result
