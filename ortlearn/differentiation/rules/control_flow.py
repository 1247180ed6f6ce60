"""Gradients of control flow: bodies are computed again, then differentiated."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper

from ...graphs.builder import TensorType
from ...graphs.editing import make_value_info
from ..bodies import Body
from ..registry import RuleSet
from ..rule_context import is_differentiable

__all__ = ["RULES"]

RULES = RuleSet("control_flow")


@RULES.rule("If")
def if_(op, node, grad):
    # y = c ? f(x) : g(x), dx = c ? f'(x) dy : g'(x) dy
    wanted = list(node.captured)
    graphs = {}
    for side in ("then_branch", "else_branch"):
        graph = node.attribute(side)
        body = Body(op, graph)
        grads = [(value.name, node.GO(i)) for i, value in enumerate(graph.output) if node.GO(i)]
        results = body.gradients(node.backpropagate, grads, wanted)
        graphs[side] = body.build(f"{side}_grad", [], results, [op.type(name) for name in wanted])
    outputs = op.If(node.I(0), n_outputs=len(wanted), **graphs)
    for name, result in zip(wanted, [outputs] if isinstance(outputs, str) else outputs, strict=True):
        node.add_gradient(name, result)
    return [None]


@RULES.rule("Loop")
def loop(op, node, grad):
    # v[t+1] = f(v[t], c): dv[t] = f'_v(v[t], c) dv[t+1], dc = sum over t of f'_c(v[t], c) dv[t+1]
    graph = node.attribute("body")
    carried = [value.name for value in graph.input[2:]]
    count = len(carried)
    types = dict(zip(carried, (op.type(node.I(i + 2)) for i in range(count)), strict=True))
    stacks = _keep_history(op, node, graph, [graph.input[0].name, *carried], types)
    trips = op.dim(stacks[0], 0, scalar=True)
    last = op.Sub(trips, np.array(1, np.int64))

    body = Body(op, graph, types)
    iteration, going = op.unique("iteration"), op.unique("going")
    position = body.op.Sub(last, iteration)
    for name, stack in zip([graph.input[0].name, *carried], stacks, strict=True):
        body.op.node("Gather", stack, position, axis=0, outputs=[name])
    body.op.node("Identity", np.array(True), outputs=[graph.input[1].name])
    scanned = [
        (value.name, body.op.Gather(node.GO(count + i), position, axis=0))
        for i, value in enumerate(graph.output[1 + count :])
        if node.GO(count + i)
    ]
    body.start()
    floats = [i for i, name in enumerate(carried) if is_differentiable(body.op, name)]
    first = [node.GO(i) or op.fill_like(node.O(i) or node.I(i + 2)) for i in floats]
    state = _State(op, body, node, [carried[i] for i in floats], first)
    seeds = [(graph.output[1 + i].name, name) for i, name in zip(floats, state.inputs, strict=False)]
    results = state.results(body.gradients(node.backpropagate, [*seeds, *scanned], state.wanted))
    inputs = [
        make_value_info(iteration, TensorType(TensorProto.INT64, ())),
        make_value_info(going, TensorType(TensorProto.BOOL, ())),
        *state.input_infos(),
    ]
    outputs_types = [TensorType(TensorProto.BOOL, ()), *state.types]
    inner = body.build("loop_grad", inputs, [going, *results], outputs_types)
    outputs = op.Loop(trips, np.array(True), *state.first, body=inner, n_outputs=len(state.first))
    grads = [None] * node.n_inputs
    for i, name in zip(floats, state.give(outputs), strict=True):
        grads[i + 2] = name
    return grads


@RULES.rule("Scan")
def scan(op, node, grad):
    # s[t+1], y[t] = f(s[t], x[t], c): ds[t], dx[t] = f' (ds[t+1], dy[t]), the sequence read backwards
    graph = node.attribute("body")
    n_scans = node.attribute("num_scan_inputs")
    count = node.n_inputs - n_scans
    states = [value.name for value in graph.input[:count]]
    items = [value.name for value in graph.input[count:]]
    in_axes = node.attribute("scan_input_axes") or [0] * n_scans
    in_ways = node.attribute("scan_input_directions") or [0] * n_scans
    n_results = len(graph.output) - count
    out_axes = node.attribute("scan_output_axes") or [0] * n_results
    out_ways = node.attribute("scan_output_directions") or [0] * n_results
    types = {name: op.type(node.I(i)) for i, name in enumerate(states)}
    types |= {name: _item_type(op.type(node.I(count + i)), in_axes[i]) for i, name in enumerate(items)}
    extra = {"scan_output_axes": out_axes, "scan_output_directions": out_ways}
    stacks = _keep_history(op, node, graph, states, types, extra)

    body = Body(op, graph, types)
    body.start()
    floats = [i for i, name in enumerate(states) if is_differentiable(body.op, name)]
    first = [node.GO(i) or op.fill_like(node.O(i) or node.I(i)) for i in floats]
    state = _State(op, body, node, [states[i] for i in floats], first)
    read = [i for i in range(n_results) if node.GO(count + i)]
    given = {i: op.unique("item_grad") for i in read}
    seeds = [(graph.output[i].name, name) for i, name in zip(floats, state.inputs, strict=False)]
    seeds += [(graph.output[count + i].name, given[i]) for i in read]
    written = [i for i, name in enumerate(items) if node.needs(count + i)]
    wanted = [*state.wanted, *(items[i] for i in written)]
    found = body.gradients(node.backpropagate, seeds, wanted)
    size = len(state.wanted)
    inputs = [
        *state.input_infos(),
        *(make_value_info(name, types[name]) for name in (*states, *items)),
        *(make_value_info(given[i], body.op.type(graph.output[count + i].name)) for i in read),
    ]
    outputs_types = [*state.types, *(types[items[i]] for i in written)]
    inner = body.build("scan_grad", inputs, [*state.results(found[:size]), *found[size:]], outputs_types)
    outputs = op.Scan(
        *state.first,
        *stacks,
        *(node.I(count + i) for i in range(n_scans)),
        *(node.GO(count + i) for i in read),
        body=inner,
        num_scan_inputs=count + n_scans + len(read),
        scan_input_axes=[0] * count + list(in_axes) + [out_axes[i] for i in read],
        scan_input_directions=[1] * count + [1 - w for w in in_ways] + [1 - out_ways[i] for i in read],
        scan_output_axes=[in_axes[i] for i in written] or None,
        scan_output_directions=[1 - in_ways[i] for i in written] or None,
        n_outputs=len(state.first) + len(written),
    )
    outputs = [outputs] if isinstance(outputs, str) else list(outputs)
    grads = [None] * node.n_inputs
    for i, name in zip(floats, state.give(outputs[:size]), strict=True):
        grads[i] = name
    for i, name in zip(written, outputs[size:], strict=True):
        grads[count + i] = name
    return grads


def _item_type(known, axis):
    if known is None or known.shape is None:
        return known
    axis %= len(known.shape)
    return TensorType(known.elem_type, known.shape[:axis] + known.shape[axis + 1 :])


class _State:
    """What the gradient of a loop carries: gradients of its state, and sums for tensors from outside."""

    def __init__(self, op, body, node, carried, first):
        self.op, self.body, self.node = op, body, node
        self.captured = list(node.captured)
        self.carried = carried
        self.first = [*first, *(op.fill_like(name) for name in self.captured)]
        self.wanted = [*carried, *self.captured]
        self.types = [body.op.type(name) for name in self.wanted]
        self.inputs = [op.unique("state_grad") for _ in self.wanted]
        for name, like in zip(self.inputs, self.wanted, strict=True):
            body.op.with_type(name, like)

    def input_infos(self):
        return [make_value_info(name, known) for name, known in zip(self.inputs, self.types, strict=True)]

    def results(self, grads):
        """Return the next state from the gradients of one iteration."""
        size = len(self.carried)
        sums = [
            self.body.op.with_type(self.body.op.Add(total, grad), name)
            for total, grad, name in zip(self.inputs[size:], grads[size:], self.captured, strict=True)
        ]
        return [*grads[:size], *sums]

    def give(self, outputs):
        """Hand the sums over; return the gradients of the initial state."""
        outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        size = len(self.carried)
        for name, result in zip(self.captured, outputs[size:], strict=True):
            self.node.add_gradient(name, result)
        return outputs[:size]


def _keep_history(op, node, graph, names, types, extra=None):
    """Let the node of the forward graph return the value of some body inputs at every iteration."""
    body = type(graph)()
    body.CopyFrom(graph)
    declared = {value.name: value for value in graph.input}
    stacks = []
    for name in names:
        kept = op.unique("history")
        body.node.append(helper.make_node("Identity", [name], [kept], name=op.unique("node_Identity")))
        info = type(declared[name])()
        info.CopyFrom(make_value_info(kept, types[name]) if types.get(name) else declared[name])
        info.name = kept
        body.output.append(info)
        stack = op.unique("history")
        known = types.get(name)
        if known is None:
            known = TensorType(
                info.type.tensor_type.elem_type, () if name == names[0] and not extra else None
            )
        shape = None if known.shape is None else (None, *known.shape)
        stacks.append(op.set_type(stack, known.elem_type, shape))
    forward = NodeProto()
    forward.CopyFrom(node.proto)
    n_outputs = len(graph.output) - (0 if extra is not None else 1)
    forward.output.extend(op.unique("unused") for _ in range(n_outputs - len(forward.output)))
    for index, name in enumerate(forward.output):
        forward.output[index] = name or op.unique("unused")
    forward.output.extend(stacks)
    changed = {"body": body}
    changed |= {key: [*values, *[0] * len(names)] for key, values in (extra or {}).items()}
    kept = [a for a in node.proto.attribute if a.name not in changed]
    del forward.attribute[:]
    forward.attribute.extend(kept)
    forward.attribute.extend(helper.make_attribute(key, value) for key, value in changed.items() if value)
    node.replacement = forward
    return stacks
