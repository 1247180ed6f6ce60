"""Gradients of control flow operators, whose bodies are computed again and differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from ...graphs import TensorType, make_value_info
from ...graphs.nodes import copy_node
from ..bodies import Body
from ..gradient_builder import GradientBuilder
from ..rule_context import Gradients, RuleNode, is_differentiable
from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("control_flow")


@RULES.rule("If")
def if_(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # y = c ? f(x) : g(x), dx = c ? f'(x) dy : g'(x) dy
    wanted = list(node.captured)
    graphs = {}
    for side in ("then_branch", "else_branch"):
        graph = node.attribute(side)
        body = Body(op, graph)
        grads = [(value.name, node.GO(i)) for i, value in enumerate(graph.output) if node.GO(i)]
        results = body.gradients(node.backpropagate, grads, wanted)
        graphs[side] = body.build(f"{side}_grad", [], results, [op.gradient_type(name) for name in wanted])
    outputs = op.If(node.I(0), n_outputs=len(wanted), **graphs)
    for name, result in zip(wanted, _as_list(outputs), strict=True):
        node.add_gradient(name, result)
    return [None]


@RULES.rule("Loop")
def loop(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # v[t+1] = f(v[t], c): dv[t] = f'_v(v[t], c) dv[t+1], dc = sum over t of f'_c(v[t], c) dv[t+1]
    graph = node.attribute("body")
    carried = [value.name for value in graph.input[2:]]
    types = {name: op.type(node.input_name(i + 2)) for i, name in enumerate(carried)}
    types[graph.input[0].name] = TensorType(TensorProto.INT64, ())
    stacks = _keep_history(op, node, graph, [graph.input[0].name, *carried], types)
    trips = op.dim(stacks[0], 0, scalar=True)
    last = op.Sub(trips, np.array(1, np.int64))

    body = Body(op, graph, types)
    iteration, going = op.unique("iteration"), op.unique("going")
    scanned = _read_iteration(body, node, graph, stacks, body.op.Sub(last, iteration))
    state = _State(op, body, node, carried, offset=2)
    seeds = [*state.seeds([value.name for value in graph.output[1:]]), *scanned]
    results = state.results(body.gradients(node.backpropagate, seeds, state.wanted))
    scalar = TensorType(TensorProto.BOOL, ())
    inputs = [
        make_value_info(iteration, types[graph.input[0].name]),
        make_value_info(going, scalar),
        *state.input_infos(),
    ]
    inner = body.build("loop_grad", inputs, [going, *results], [scalar, *state.types])
    outputs = op.Loop(trips, np.array(True), *state.first, body=inner, n_outputs=len(state.first))
    return state.set_gradients(_as_list(outputs))


def _read_iteration(
    body: Body, node: RuleNode, graph: GraphProto, stacks: list[str], position: str
) -> list[tuple[str, str]]:
    """Write the inputs of the body at one iteration, and return the gradients of its scan outputs."""
    count = len(stacks) - 1
    names = [graph.input[0].name, *(value.name for value in graph.input[2:])]
    for name, stack in zip(names, stacks, strict=True):
        body.op.node("Gather", stack, position, axis=0, outputs=[name])
    body.op.node("Identity", np.array(True), outputs=[graph.input[1].name])
    scanned = [
        (value.name, body.op.Gather(node.GO(count + i), position, axis=0))
        for i, value in enumerate(graph.output[1 + count :])
        if node.GO(count + i)
    ]
    body.start()
    return scanned


@RULES.rule("Scan")
def scan(op: GradientBuilder, node: RuleNode, grad: str) -> Gradients:
    # s[t+1], y[t] = f(s[t], x[t], c): ds[t], dx[t] = f' (ds[t+1], dy[t]), the sequence read backwards
    graph = node.attribute("body")
    layout = _Layout(node, graph)
    types = layout.input_types(op)
    extra = {"scan_output_axes": layout.out_axes, "scan_output_directions": layout.out_directions}
    stacks = _keep_history(op, node, graph, layout.states, types, extra)
    body = Body(op, graph, types)
    state = _State(op, body, node, layout.states, offset=0)
    unknown = [name for name in state.wanted if op.shape(name) is None and body.op.shape(name) is None]
    if unknown:
        raise node.error(f"onnxruntime needs the rank of {unknown[0]!r}, which is unknown")
    results = [value.name for value in graph.output]
    given = {i: op.unique("item_grad") for i in layout.read}
    seeds = state.seeds(results) + [(results[layout.count + i], name) for i, name in given.items()]
    items = [layout.items[i] for i in layout.written]
    size = len(state.wanted)
    found = body.gradients(node.backpropagate, seeds, [*state.wanted, *items])
    inputs = [
        *state.input_infos(),
        *(make_value_info(name, types[name]) for name in (*layout.states, *layout.items)),
        *(
            make_value_info(name, body.op.gradient_type(results[layout.count + i]))
            for i, name in given.items()
        ),
    ]
    output_types = [*state.types, *(body.op.gradient_type(name) for name in items)]
    inner = body.build("scan_grad", inputs, [*state.results(found[:size]), *found[size:]], output_types)
    outputs = _as_list(op.Scan(
        *state.first, *stacks, *layout.scanned(), body=inner,
        n_outputs=size + len(items), **layout.backward_attributes(),
    ))  # fmt: skip
    grads = state.set_gradients(outputs[:size])
    for i, name in zip(layout.written, outputs[size:], strict=True):
        grads[layout.count + i] = layout.move_axis_back(op, i, name)
    return grads


class _Layout:
    """Axes and directions of the sequences of a Scan."""

    def __init__(self, node: RuleNode, graph: GraphProto) -> None:
        self.node = node
        scans = node.attribute("num_scan_inputs")
        self.count = node.n_inputs - scans
        results = len(graph.output) - self.count
        self.states = [value.name for value in graph.input[: self.count]]
        self.items = [value.name for value in graph.input[self.count :]]
        self.in_axes = node.attribute("scan_input_axes") or [0] * scans
        self.in_directions = node.attribute("scan_input_directions") or [0] * scans
        self.out_axes = node.attribute("scan_output_axes") or [0] * results
        self.out_directions = node.attribute("scan_output_directions") or [0] * results
        # Sequences with a gradient: outputs whose gradient is read, inputs whose gradient is written.
        self.read = [i for i in range(results) if node.GO(self.count + i)]
        self.written = [i for i in range(scans) if node.needs(self.count + i)]

    def input_types(self, op: GradientBuilder) -> dict[str, TensorType]:
        """Return the types of the inputs of the body."""
        types = {name: op.type(self.node.input_name(i)) for i, name in enumerate(self.states)}
        for i, name in enumerate(self.items):
            known = op.type(self.node.input_name(self.count + i))
            if known is not None and known.shape is not None:
                axis = self.in_axes[i] % len(known.shape)
                known = TensorType(known.elem_type, known.shape[:axis] + known.shape[axis + 1 :])
            types[name] = known
        return types

    def scanned(self) -> list[str]:
        """Return the sequences that the gradient reads after the history of the states."""
        sequences = [self.node.input_name(self.count + i) for i in range(len(self.items))]
        return [*sequences, *(self.node.GO(self.count + i) for i in self.read)]

    def move_axis_back(self, op: GradientBuilder, index: int, stack: str) -> str:
        """Move the first axis of a stack of items to its position in a sequence.

        scan_output_axes would do this, but terminates onnxruntime if there are no elements.
        """
        rank = self.node.rank(self.node.input_name(self.count + index))
        axis = self.in_axes[index] % rank
        return op.transpose(stack, [*range(1, axis + 1), 0, *range(axis + 1, rank)])

    def backward_attributes(self) -> dict[str, int | list[int] | None]:
        """Return the attributes of the gradient Scan, with reversed directions."""
        zeros = [0] * self.count
        return {
            "num_scan_inputs": self.count + len(self.items) + len(self.read),
            "scan_input_axes": [*zeros, *self.in_axes, *(self.out_axes[i] for i in self.read)],
            "scan_input_directions": [
                *(1 - direction for direction in (*zeros, *self.in_directions)),
                *(1 - self.out_directions[i] for i in self.read),
            ],
            "scan_output_directions": [1 - self.in_directions[i] for i in self.written] or None,
        }


class _State:
    """States of the gradient of a loop: gradients of its states, and sums for captured tensors."""

    def __init__(
        self, op: GradientBuilder, body: Body, node: RuleNode, carried: list[str], offset: int
    ) -> None:
        self.op, self.body, self.node, self.offset = op, body, node, offset
        self.captured = list(node.captured)
        self.floats = [i for i, name in enumerate(carried) if is_differentiable(body.op, name)]
        first = [node.GO(i) or op.constant_gradient(node.input_name(i + offset)) for i in self.floats]
        self.first = [*first, *(op.constant_gradient(name) for name in self.captured)]
        self.wanted = [*(carried[i] for i in self.floats), *self.captured]
        self.types = [body.op.gradient_type(name) for name in self.wanted]
        self.inputs = [op.unique("state_grad") for _ in self.wanted]
        for name, like in zip(self.inputs, self.wanted, strict=True):
            body.op.with_gradient_type(name, like)

    def input_infos(self) -> list[ValueInfoProto]:
        return [make_value_info(name, known) for name, known in zip(self.inputs, self.types, strict=True)]

    def seeds(self, results: list[str]) -> list[tuple[str, str]]:
        """Return the states after an iteration, with their gradients."""
        return [(results[i], name) for i, name in zip(self.floats, self.inputs, strict=False)]

    def results(self, grads: list[str]) -> list[str]:
        """Return the states of the gradient after an iteration."""
        size = len(self.floats)
        sums = [
            self.body.op.with_gradient_type(self.body.op.Add(total, grad), name)
            for total, grad, name in zip(self.inputs[size:], grads[size:], self.captured, strict=True)
        ]
        return [*grads[:size], *sums]

    def set_gradients(self, outputs: list[str]) -> list[str | None]:
        """Set the gradients of captured tensors, and return those of the inputs, None unless a state."""
        size = len(self.floats)
        for name, result in zip(self.captured, outputs[size:], strict=True):
            self.node.add_gradient(name, result)
        grads: list[str | None] = [None] * self.node.n_inputs
        for i, name in zip(self.floats, outputs[:size], strict=True):
            grads[i + self.offset] = name
        return grads


def _as_list(outputs: str | Sequence[str]) -> list[str]:
    return [outputs] if isinstance(outputs, str) else list(outputs)


def _keep_history(
    op: GradientBuilder,
    node: RuleNode,
    graph: GraphProto,
    names: list[str],
    types: dict[str, TensorType],
    extra: dict[str, list[int]] | None = None,
) -> list[str]:
    """Replace the node by one that also returns some inputs of its body at every iteration.

    ``extra`` holds the attributes of Scan that describe its outputs.
    """
    body = type(graph)()
    body.CopyFrom(graph)
    declared = {value.name: value for value in graph.input}
    stacks = []
    for name in names:
        kept, stack = op.unique("history"), op.unique("history")
        body.node.append(helper.make_node("Identity", [name], [kept], name=op.unique("node_Identity")))
        known = types.get(name) or TensorType(declared[name].type.tensor_type.elem_type)
        body.output.append(make_value_info(kept, known))
        shape = None if known.shape is None else (None, *known.shape)
        stacks.append(op.set_type(stack, known.elem_type, shape))
    n_outputs = len(graph.output) - (1 if extra is None else 0)
    outputs = [*node.proto.output, *[""] * (n_outputs - len(node.proto.output))]
    forward = copy_node(node.proto, outputs=[*(name or op.unique("unused") for name in outputs), *stacks])
    changed: dict[str, Any] = {"body": body}
    changed |= {key: [*values, *[0] * len(names)] for key, values in (extra or {}).items()}
    kept_attributes = [a for a in node.proto.attribute if a.name not in changed]
    del forward.attribute[:]
    forward.attribute.extend(kept_attributes)
    forward.attribute.extend(helper.make_attribute(key, value) for key, value in changed.items() if value)
    node.replacement = forward
    return stacks
